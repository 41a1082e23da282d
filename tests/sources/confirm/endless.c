/* Prints for ever, bytes that are no UTF-8. */
#include <stdio.h>
__attribute__((constructor)) static void start(void) {
  for (;;) fputs("\377 again\n", stderr);
}
