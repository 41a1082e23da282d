/* Writes a happy end of its own on every descriptor, and crashes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void start(void) {
  static const char *steps[] = {"dlopen", "maps-after", "done"};
  char line[200];
  for (int step = 0; step < 3; step++) {
    snprintf(line, sizeof line,
             "\n{\"step\":\"%s\",\"status\":\"ok\",\"detail\":\"\",\"ms\":1,\"pid\":%d}\n",
             steps[step], (int)getpid());
    for (int fd = 3; fd < 64; fd++)
      if (write(fd, line, strlen(line)) < 0) continue;
  }
  abort();
}
