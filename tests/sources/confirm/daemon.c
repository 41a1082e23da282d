/* Loads (with WAIT: never comes back), and leaves a process behind in a session of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void start(void) {
  if (fork() == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    const char *name = getenv("DAEMON_PID_FILE");
    char draft[4096];
    snprintf(draft, sizeof draft, "%s.draft", name);
    FILE *file = fopen(draft, "w");
    fprintf(file, "%d", (int)getpid());
    fclose(file);
    rename(draft, name);
    sleep(120);
    _exit(0);
  }
  while (access(getenv("DAEMON_PID_FILE"), F_OK) != 0) usleep(10000);
#ifdef WAIT
  for (;;) pause();
#endif
}
