// Masks personal data: mail addresses, public IP addresses, and, if asked, phone numbers. As FineWeb did (datatrove,
// formatters/pii.py): addresses become those of a few examples, in turn, so that text stays text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tokamak {

struct PersonalDataOptions {
  bool mail = true;
  bool ip = true;
  bool phone = false;

  template <class Visitor>
  void fields(Visitor& v) {
    v("mail", mail, "replace mail addresses by email@example.com or firstname.lastname@example.org");
    v("ip", ip, "replace public IPv4 addresses by one of six fixed ones; private ranges stay");
    v("phone", phone, "replace North American phone numbers by 555-0100; other numbers may look like them");
  }
};

struct PersonalDataCounts {
  int64_t mails = 0, ips = 0, phones = 0;
};

// Replaces `out` by `text` with its personal data masked. The masks depend on the text alone.
PersonalDataCounts mask_personal_data(std::string_view text, const PersonalDataOptions& options, std::string& out);

}  // namespace tokamak
