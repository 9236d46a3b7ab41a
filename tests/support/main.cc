#include "support/catch.h"

int main(int argc, char** argv) { return tokamak::run_catch(argc, argv); }
