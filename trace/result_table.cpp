#include "trace/result_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <type_traits>
#include <unordered_map>

#include "common/sha256.h"
#include "kernels/threads/parallel.h"
#include "trace/hdf5/global_heap.h"
#include "trace/hdf5/hdf5.h"
#include "trace/hdf5/threaded_chunk_io.h"
#include "trace/records/result_columns.h"
#include "trace/records/storable_text.h"
#include "trace/records/trace_errors.h"

namespace kvscope::trace {

namespace {

/// One value of a table in the memory layout that HDF5 reads and writes.
union Slot {
    const char* text;
    std::int64_t integer;
    std::uint64_t natural;
    double real;
};
static_assert(sizeof(Slot) == 8, "columns must follow one another without padding");

constexpr std::size_t n_columns = std::size(result_columns);

/// Calls `visit` with a reference to the member of `slot` that holds the column's value.
template <class Value, class Visit>
void visit_slot(Value ResultRow::*, Slot& slot, Visit visit) {
    if constexpr (std::is_same_v<Value, SharedText>)
        visit(slot.text);
    else if constexpr (std::is_same_v<Value, std::int64_t>)
        visit(slot.integer);
    else if constexpr (std::is_same_v<Value, std::uint64_t>)
        visit(slot.natural);
    else
        visit(slot.real);
}

bool is_text(const ResultColumn& column) { return std::holds_alternative<SharedText ResultRow::*>(column.member); }

h5::Handle type_of(const ResultColumn& column) {
    const auto copied = [](hid_t type) { return h5::Handle(H5Tcopy(type), H5Tclose); };
    if (is_text(column)) return h5::text_type(0);
    if (std::holds_alternative<std::int64_t ResultRow::*>(column.member)) return copied(H5T_NATIVE_INT64);
    if (std::holds_alternative<std::uint64_t ResultRow::*>(column.member)) return copied(H5T_NATIVE_UINT64);
    return copied(H5T_NATIVE_DOUBLE);
}

bool same_kind(hid_t stored, H5T_class_t wanted) {
    const H5T_class_t found = H5Tget_class(stored);
    return found == wanted || (wanted == H5T_FLOAT && found == H5T_INTEGER);
}

/// Whether a stored table has the column. Throws DamagedTrace if the column has the wrong type, or is required and
/// missing.
bool has_column(hid_t stored, const ResultColumn& column, const std::string& where) {
    const std::string name(column.name);
    const int at = H5Tget_member_index(stored, name.c_str());
    if (at < 0) {
        if (column.need != schema::Need::always) return false;
        throw DamagedTrace(fmt::format("{}: the column {} is missing", where, name));
    }
    const h5::Handle type(h5::checked(H5Tget_member_type(stored, static_cast<unsigned>(at)), "read the table"),
                          H5Tclose);
    const h5::Handle ours = type_of(column);
    const H5T_class_t kind = H5Tget_class(ours.get());
    if (!same_kind(type.get(), kind) || (kind == H5T_STRING && H5Tis_variable_str(type.get()) <= 0)) {
        throw DamagedTrace(fmt::format("{}: column {}: expected {}, found {}", where, name,
                                       kind == H5T_STRING ? "text of variable length" : h5::type_name(ours.get()),
                                       h5::type_name(type.get())));
    }
    return true;
}

/// Returns the type of the rows in memory, with the columns for which `has` is true.
template <class Has>
h5::Handle table_type(Has has) {
    const std::string action = "describe a table of results";
    h5::Handle table(h5::checked(H5Tcreate(H5T_COMPOUND, n_columns * sizeof(Slot)), action), H5Tclose);
    for (std::size_t i = 0; i < n_columns; ++i) {
        const ResultColumn& column = result_columns[i];
        if (!has(column)) continue;
        const h5::Handle type = type_of(column);
        h5::checked(H5Tinsert(table.get(), std::string(column.name).c_str(), i * sizeof(Slot), type.get()), action);
    }
    return table;
}

h5::Handle select_rows(hid_t table, const RowRange& range, const std::string& action) {
    h5::Handle space(h5::checked(H5Dget_space(table), action), H5Sclose);
    const hsize_t first = range.first, count = range.count;
    h5::checked(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &first, nullptr, &count, nullptr), action);
    return space;
}

h5::Handle memory_of_rows(std::size_t count, const std::string& action) {
    const hsize_t length = count;
    return {h5::checked(H5Screate_simple(1, &length, nullptr), action), H5Sclose};
}

h5::Handle type_of_all_columns() {
    return table_type([](const ResultColumn&) { return true; });
}

/// A table whose type and size were checked.
struct OpenTable {
    hid_t table;
    h5::Handle type;
    std::size_t n_rows = 0;

    OpenTable(hid_t data_set, const std::string& where)
        : table(data_set), type(h5::checked(H5Dget_type(data_set), "read the table"), H5Tclose) {
        const h5::DataSetInfo found = h5::data_set_info(table);
        if (found.shape.size() != 1 || H5Tget_class(type.get()) != H5T_COMPOUND) {
            throw DamagedTrace(fmt::format("{}: expected a table with one row per sample, found {} of rank {}", where,
                                           found.type, found.shape.size()));
        }
        for (const ResultColumn& column : result_columns) (void)has_column(type.get(), column, where);
        n_rows = found.shape[0];
        if (!h5::is_plausible_size(found.bytes, found.stored_bytes))
            throw DamagedTrace(
                fmt::format("{}: {} rows are too many for {} stored bytes", where, n_rows, found.stored_bytes));
    }
    void require(const RowRange& rows, const std::string& where) const {
        if (rows.first > n_rows || rows.count > n_rows - rows.first)
            throw DamagedTrace(
                fmt::format("{}: expected at least {} rows, found {}", where, rows.first + rows.count, n_rows));
    }
};

void read_with_hdf5(const OpenTable& open, const RowRange& range, const std::string& where, ResultRow* out) {
    if (range.count == 0) return;
    const std::string action = "read the table";
    const h5::Handle wanted =
        table_type([&](const ResultColumn& column) { return has_column(open.type.get(), column, where); });
    std::vector<Slot> slots(range.count * n_columns);
    const h5::Handle rows = select_rows(open.table, range, action);
    const h5::Handle memory = memory_of_rows(range.count, action);
    h5::checked(H5Dread(open.table, wanted.get(), memory.get(), rows.get(), H5P_DEFAULT, slots.data()), action);
    for (std::size_t i = 0; i < n_columns; ++i) {
        const ResultColumn& column = result_columns[i];
        if (H5Tget_member_index(wanted.get(), std::string(column.name).c_str()) < 0) continue;
        for (std::size_t row = 0; row < range.count; ++row) {
            const auto move = [&](auto member) {
                visit_slot(member, slots[row * n_columns + i], [&](auto value) {
                    if constexpr (std::is_pointer_v<decltype(value)>)
                        out[row].*member = value == nullptr ? SharedText() : SharedText(value);
                    else
                        out[row].*member = value;
                });
            };
            std::visit(move, column.member);
        }
    }
    H5Dvlen_reclaim(wanted.get(), memory.get(), H5P_DEFAULT, slots.data());
}

/// The texts of a column, read row by row. Equal texts share their characters.
class ColumnTexts {
 public:
    [[nodiscard]] const SharedText& shared(std::string_view text) {
        if (text == last_.string()) return last_;  // such as the columns of a sample, which has a row for each setting
        if (known_.size() >= most_known) known_.clear();  // such as predictions, most of which differ
        const auto found = known_.find(text);
        if (found != known_.end()) return last_ = found->second;
        last_ = text;
        known_.emplace(last_.string(), last_);
        return last_;
    }

 private:
    static constexpr std::size_t most_known = 256;
    SharedText last_;
    std::unordered_map<std::string_view, SharedText> known_;
};

/// A table whose stored bytes can be used without HDF5's conversion, which takes microseconds for each text.
class StoredTable {
 public:
    /// Returns nullopt if HDF5 must convert the rows: numbers of other types, or other filters.
    static std::optional<StoredTable> of(const OpenTable& open) {
        const hid_t table = open.table, type = open.type.get();
        StoredTable stored(open);
        std::map<std::size_t, const ResultColumn*> by_offset;  // offsets in memory, where a text has 8 bytes
        for (unsigned i = 0; i < static_cast<unsigned>(H5Tget_nmembers(type)); ++i) {
            const std::unique_ptr<char, herr_t (*)(void*)> name(H5Tget_member_name(type, i), H5free_memory);
            const h5::Handle member(h5::checked(H5Tget_member_type(type, i), "read the table"), H5Tclose);
            const auto* const column =
                std::ranges::find(result_columns, std::string_view(name.get()), &ResultColumn::name);
            if (column == std::end(result_columns) || H5Tequal(member.get(), type_of(*column).get()) <= 0)
                return std::nullopt;
            by_offset[H5Tget_member_offset(type, i)] = column;
        }
        std::size_t n_texts = 0;
        for (const auto& [offset, column] : by_offset) {
            stored.columns_.push_back({column, offset + n_texts * (h5::stored_text_bytes - sizeof(Slot))});
            n_texts += is_text(*column) ? 1 : 0;
        }
        stored.row_bytes_ = H5Tget_size(type) + n_texts * (h5::stored_text_bytes - sizeof(Slot));
        const h5::Handle creation(h5::checked(H5Dget_create_plist(table), "read the table"), H5Pclose);
        hsize_t chunk = 0;
        constexpr hsize_t most_chunk_rows = hsize_t{1} << 20;
        if (H5Pget_layout(creation.get()) != H5D_CHUNKED || H5Pget_chunk(creation.get(), 1, &chunk) != 1 ||
            chunk == 0 || chunk > most_chunk_rows)
            return std::nullopt;
        stored.chunk_rows_ = chunk;
        const auto texts_of_file = h5::StoredTexts::of_file(table);
        if (!texts_of_file) return std::nullopt;
        stored.parts_.assign(n_parts, {*texts_of_file, std::vector<ColumnTexts>(stored.columns_.size())});
        return stored;
    }

    /// Returns false if HDF5 must read the rows, such as those of a chunk that was never written. Throws DamagedTrace
    /// for a damaged text: HDF5 would crash, or return another text.
    [[nodiscard]] bool read(const RowRange& range, const std::string& where, ResultRow* out) {
        constexpr std::size_t chunks_at_once = 16;  // about 25 MB of rows
        const std::size_t end = range.first + range.count;
        for (std::size_t at = range.first / chunk_rows_ * chunk_rows_; at < end; at += chunks_at_once * chunk_rows_) {
            if (!fetch(at, std::min(chunks_at_once * chunk_rows_, n_rows_ - at))) return false;
            const std::size_t first = std::max(at, range.first);
            const std::size_t count = std::min(end, at + chunks_at_once * chunk_rows_) - first;
            std::array<bool, n_parts> is_read = {};
            const auto read_part = [&](std::int64_t number) {
                const auto part = static_cast<std::size_t>(number);
                is_read[part] = true;
                for (std::size_t i = count * part / n_parts; i < count * (part + 1) / n_parts; ++i)
                    if (!fill(first + i - at, parts_[part], out[first + i - range.first])) is_read[part] = false;
            };
            kernels::parallel_for(n_parts, static_cast<std::int64_t>(count * columns_.size()), read_part);
            if (!std::ranges::all_of(is_read, std::identity()))
                throw DamagedTrace(
                    fmt::format("{}: the place of a text in the file is damaged; restore the file from a "
                                "backup, or make the trace again",
                                where));
        }
        return true;
    }

 private:
    struct Column {
        const ResultColumn* of;
        std::size_t offset;  ///< in a stored row
    };

    explicit StoredTable(const OpenTable& open) : table_(open.table), n_rows_(open.n_rows) {}

    /// @param first row that begins a chunk
    bool fetch(std::size_t first, std::size_t count) {
        bytes_.resize(count * row_bytes_);
        return h5::read_stored_rows(table_, row_bytes_, {{first}, {count}}, bytes_.data(), "read the table");
    }

    /// Texts that one thread reads.
    struct Part {
        h5::StoredTexts stored;
        std::vector<ColumnTexts> columns;
    };

    bool fill(std::size_t row, Part& part, ResultRow& out) const {
        const unsigned char* const stored = bytes_.data() + row * row_bytes_;
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            const Column& column = columns_[i];
            const auto set = [&](auto member) {
                auto& value = out.*member;
                if constexpr (std::is_same_v<std::decay_t<decltype(value)>, SharedText>) {
                    const auto text = part.stored.find(stored + column.offset);
                    if (text) value = part.columns[i].shared(*text);
                    return text.has_value();
                } else {
                    std::memcpy(&value, stored + column.offset, sizeof(value));
                    return true;
                }
            };
            if (!std::visit(set, column.of->member)) return false;
        }
        return true;
    }

    hid_t table_;
    std::size_t n_rows_;
    std::vector<Column> columns_;
    std::size_t row_bytes_ = 0, chunk_rows_ = 0;
    static constexpr std::size_t n_parts = 4;  ///< of rows that are filled in parallel
    std::vector<Part> parts_;
    std::vector<unsigned char> bytes_;
};

void read_rows(const OpenTable& open, const RowRange& range, const std::string& where, ResultRow* out) {
    if (auto stored = StoredTable::of(open); stored && stored->read(range, where, out)) return;
    std::fill_n(out, range.count, ResultRow());
    read_with_hdf5(open, range, where, out);
}

}  // namespace

std::vector<ResultRow> load_results(hid_t table, const std::string& where, const std::optional<RowRange>& range) {
    const OpenTable open(table, where);
    const RowRange rows = range.value_or(RowRange{0, open.n_rows});
    open.require(rows, where);
    std::vector<ResultRow> out(rows.count);
    read_rows(open, rows, where, out.data());
    return out;
}

void load_results_into(ResultRow* out, hid_t table, const std::string& where, const RowRange& range) {
    const OpenTable open(table, where);
    open.require(range, where);
    read_rows(open, range, where, out);
}

std::size_t n_rows_of_table(hid_t table, const std::string& where) { return OpenTable(table, where).n_rows; }

std::set<std::string_view> columns_of_table(hid_t table) {
    const h5::Handle stored(h5::checked(H5Dget_type(table), "read the table"), H5Tclose);
    std::set<std::string_view> names;
    if (H5Tget_class(stored.get()) != H5T_COMPOUND) return names;
    for (const ResultColumn& column : result_columns)
        if (H5Tget_member_index(stored.get(), std::string(column.name).c_str()) >= 0) names.insert(column.name);
    return names;
}

h5::Handle create_results(hid_t file, const std::string& path, std::size_t n_rows) {
    const std::string action = fmt::format("write {}", path);
    const h5::Handle type = type_of_all_columns();
    const std::size_t shape[] = {n_rows};
    const h5::Handle space = memory_of_rows(n_rows, action);
    const h5::Handle creation = h5::creation_properties(shape, n_columns * sizeof(Slot));
    const h5::Handle links = h5::link_properties();
    return {
        h5::checked(H5Dcreate2(file, path.c_str(), type.get(), space.get(), links.get(), creation.get(), H5P_DEFAULT),
                    action),
        H5Dclose};
}

void store_rows(hid_t table, std::size_t first, const std::vector<ResultRow>& rows, const std::string& action) {
    if (rows.empty()) return;
    std::deque<std::string> texts;
    const auto stored = [&texts](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, SharedText>)
            return texts.emplace_back(storable_text(value)).c_str();
        else
            return value;
    };
    std::vector<Slot> slots(rows.size() * n_columns);
    for (std::size_t row = 0; row < rows.size(); ++row) {
        for (std::size_t i = 0; i < n_columns; ++i) {
            const auto store = [&](auto member) {
                visit_slot(member, slots[row * n_columns + i], [&](auto& value) { value = stored(rows[row].*member); });
            };
            std::visit(store, result_columns[i].member);
        }
    }
    const h5::Handle type = type_of_all_columns();
    const h5::Handle place = select_rows(table, {first, rows.size()}, action);
    const h5::Handle memory = memory_of_rows(rows.size(), action);
    h5::checked(H5Dwrite(table, type.get(), memory.get(), place.get(), H5P_DEFAULT, slots.data()), action);
}

void store_results(hid_t file, const std::string& path, const std::vector<ResultRow>& rows) {
    const std::string action = fmt::format("write {}", path);
    h5::Handle table = create_results(file, path, rows.size());
    store_rows(table.get(), 0, rows, action);
    table.close(action);
}

void DataHash::add(std::span<const ResultRow> rows) {
    for (const ResultRow& row : rows) {
        const bool is_same = !samples_.empty() && sample_id_ == row.sample_id && samples_.back() == row.sample_hash;
        if (is_same && row.policy != full_policy) continue;  // the rows of each sample begin with the full run
        samples_.push_back(row.sample_hash);
        sample_id_ = row.sample_id;
    }
}

std::string DataHash::text() {
    std::ranges::sort(samples_);  // an extended trace can have another order
    if (samples_.empty() || samples_.front().empty()) return "";
    Sha256 hash;
    for (const std::string& sample : samples_) hash.update(sample + "\n");
    return hash.hex_digest();
}

void set_data_hash(std::vector<ResultRow>& rows) {
    DataHash hash;
    hash.add(rows);
    const SharedText digest = hash.text();
    for (ResultRow& row : rows) row.data_hash = digest;
}

}  // namespace kvscope::trace
