#include <fmt/format.h>

#include <cstddef>
#include <deque>

#include "trace/hdf5/hdf5.h"
#include "trace/records/storable_text.h"
#include "trace/result_table.h"
#include "trace/store_records.h"

namespace kvscope::trace {

namespace {

struct AddColumn {
    hid_t table = H5I_INVALID_HID;
    hid_t text = H5I_INVALID_HID;
    std::size_t offset = 0;

    void operator()(const char* name, const char* const&) { insert(name, text, sizeof(char*)); }
    void operator()(const char* name, const std::int64_t&) { insert(name, H5T_NATIVE_INT64, sizeof(std::int64_t)); }
    void operator()(const char* name, const double&) { insert(name, H5T_NATIVE_DOUBLE, sizeof(double)); }
    void insert(const char* name, hid_t type, std::size_t size) {
        h5::checked(H5Tinsert(table, name, offset, type), "describe a table of results");
        offset += size;
    }
};

}  // namespace

h5::Handle result_table_type() {
    h5::Handle table(h5::checked(H5Tcreate(H5T_COMPOUND, sizeof(PackedResultRow)), "describe a table of results"),
                     H5Tclose);
    const h5::Handle text = h5::text_type(0);
    const PackedResultRow row{};
    AddColumn add{table.get(), text.get()};
    for_each_result_column(row, [&](const char* name, const auto& value) { add(name, value); });
    return table;
}

void store_results(hid_t file, const std::string& path, const std::vector<ResultRow>& rows) {
    std::deque<std::string> texts;
    const auto keep = [&](const std::string& text) { return texts.emplace_back(storable_text(text)).c_str(); };
    std::vector<PackedResultRow> packed;
    packed.reserve(rows.size());
    for (const ResultRow& row : rows) {
        packed.push_back({keep(row.sample_id), keep(row.prompt_hash), keep(row.policy), keep(row.parameters_json),
                          row.budget, row.budget_fraction, row.length, row.depth, keep(row.prediction),
                          keep(row.answers_json), keep(row.metric), keep(row.scored_as), row.score, row.seconds,
                          row.kept_share, keep(row.status)});
    }

    const std::string action = fmt::format("write {}", path);
    const h5::Handle type = result_table_type();
    const std::size_t shape[] = {rows.size()};
    const hsize_t length = rows.size();
    const h5::Handle space(h5::checked(H5Screate_simple(1, &length, nullptr), action), H5Sclose);
    const h5::Handle creation = h5::creation_properties(shape, sizeof(PackedResultRow));
    const h5::Handle links(h5::checked(H5Pcreate(H5P_LINK_CREATE), action), H5Pclose);
    h5::checked(H5Pset_create_intermediate_group(links.get(), 1), action);
    h5::Handle table(
        h5::checked(H5Dcreate2(file, path.c_str(), type.get(), space.get(), links.get(), creation.get(), H5P_DEFAULT),
                    action),
        H5Dclose);
    if (!packed.empty()) {
        h5::checked(H5Dwrite(table.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, packed.data()), action);
    }
    table.close(action);
}

}  // namespace kvscope::trace
