#include "comm/data_comm.h"

namespace tokamak {

std::unique_ptr<Comm> make_data_comm(Comm& control, Device& device, const RuntimeOptions& options, Precision reduce) {
  if (control.size() == 1) return make_single_comm();
  if (device.uses_host_memory()) return control.split(0);
  return make_nccl_comm(control, device, options, reduce);
}

}  // namespace tokamak
