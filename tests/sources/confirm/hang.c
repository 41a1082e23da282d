/* A static initialiser that never comes back, with a process of its own that does not either. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void start(void) {
  const char *path = getenv("HANG_PID_FILE");
  pid_t pid = fork();
  if (pid > 0 && path) {
    FILE *file = fopen(path, "w");
    fprintf(file, "%d", (int)pid);
    fclose(file);
  }
  for (;;) pause();
}
