/* main.c - where the process begins; apart from the rest, so that tests can link
 * everything else. */
#include "app/program.h"

int main(int argc, char **argv)
{
    return program_run(argc, argv);
}
