/* Prints 10 MB on stdout and on stderr, and loads. */
#include <stdio.h>
__attribute__((constructor)) static void start(void) {
  for (int line = 0; line < 10 * 1024 * 16; line++) {
    fprintf(stdout, "stdout %055d\n", line);
    fprintf(stderr, "stderr %055d\n", line);
  }
  fflush(stdout);
}
