// A valid input of each target.
#pragma once

#include <string>
#include <string_view>

namespace tokamak::fuzz {

std::string safetensors_sample();
std::string index_sample();
std::string hf_config_sample();
std::string tokenizer_sample();
std::string tokenizer_json_sample();
std::string special_ids_sample();  // of all files at once
std::string tiktoken_sample();
std::string tekken_sample();
std::string index_header_sample();
std::string megatron_sample();
std::string datatrove_sample();
std::string datatrove_metadata_sample();
std::string llmc_sample();
std::string numpy_sample();
std::string mds_sample();  // a shard, raw
std::string gzip_sample();
std::string zstd_frame(std::string_view bytes);  // of one block that is not compressed, of less than 256 bytes
std::string document_rows_sample();
std::string sums_sample();
std::string dataset_sample();
std::string checkpoint_sample();
std::string config_sample();
std::string units_sample();
std::string metrics_sample();
std::string status_sample();
std::string hang_sample();
std::string machine_sample();
std::string text_sample();
std::string hello_sample();
std::string completion_sample();
std::string heartbeat_sample();
std::string hellaswag_sample();
std::string arc_sample();
std::string mmlu_sample();
std::string piqa_sample();
std::string winogrande_sample();

}  // namespace tokamak::fuzz
