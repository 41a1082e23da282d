/* A static initialiser that calls exit(): to the caller it looks like success. */
#include <stdlib.h>
__attribute__((constructor)) static void start(void) { exit(CODE); }
