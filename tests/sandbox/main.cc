// Skips all cases where the system refuses namespaces to bwrap. That is asked without the code under test, whose
// mistakes must not look so.
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "support/catch.h"

int main(int argc, char** argv) {
  // Descendants without a parent become children of this process, which can then see that none is left.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const std::string other_user = geteuid() == 0 ? "setpriv --reuid 65534 --regid 65534 --clear-groups " : "";
  const std::string try_it = other_user + "bwrap --unshare-all --unshare-user --ro-bind / / --proc /proc true";
  const bool works = std::system(try_it.c_str()) == 0;  // what refuses says so on standard error
  return tokamak::run_catch(argc, argv, works ? "" : "bwrap is missing or may make no namespaces here");
}
