// Which of the mutants is on; included by every file that has some.
#ifndef GRADCHECK_MUTANTS_H
#define GRADCHECK_MUTANTS_H

#ifdef __cplusplus
extern "C" {
#endif

// The number of the mutant from the environment variable GRADCHECK_MUTANT, 0 for none.
__attribute__((visibility("default"))) extern int gradcheck_mutant;

// Says once, in the file that GRADCHECK_MUTANT_REACHED names, that the mutant's code ran. Returns 1.
__attribute__((visibility("default"))) int gradcheck_mutant_reached(void);

#ifdef __cplusplus
}
#endif

#define GRADCHECK_MUTANT(number) \
    (__builtin_expect(gradcheck_mutant == (number), 0) && gradcheck_mutant_reached())

#endif
