/* A static initialiser that forks and lets both copies go on. */
#include <unistd.h>
__attribute__((constructor)) static void start(void) { (void)!fork(); }
