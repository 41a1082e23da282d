/* A static initialiser that writes through a null pointer. */
__attribute__((constructor)) static void start(void) { *(volatile int *)0 = 1; }
