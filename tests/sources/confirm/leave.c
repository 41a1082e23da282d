/* Loads, and leaves a process behind that keeps stdout and stderr open for two minutes. */
#include <unistd.h>
__attribute__((constructor)) static void start(void) {
  if (fork() == 0) {
    sleep(120);
    _exit(0);
  }
}
