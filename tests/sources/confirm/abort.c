/* A static initialiser that aborts, as an uncaught C++ exception does. */
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void start(void) {
  fputs("terminate called after throwing an instance of 'c10::Error'\n", stderr);
  abort();
}
