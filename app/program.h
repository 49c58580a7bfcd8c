/* program.h - the whole program, apart from main. */
#ifndef APP_PROGRAM_H
#define APP_PROGRAM_H

/* Takes main's arguments; returns the exit status. */
int program_run(int argc, char **argv);

#endif
