/* Closes every descriptor; with REUSE, opens a file of its own under each number after that. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void start(void) {
  for (int fd = 0; fd < 1024; fd++) close(fd);
#ifdef REUSE
  for (int count = 0; count < 64; count++) open(getenv("SHUT_FILE"), O_WRONLY | O_CREAT | O_APPEND, 0644);
#endif
}
