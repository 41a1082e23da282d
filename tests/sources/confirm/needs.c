/* Linked with a library that the test then takes away. */
extern int answer(void);
int ask(void) { return answer(); }
