#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvscope::gui {

/// A run for as long as its document is open: its place among the others changes, this does not, and no other run ever
/// has it (Document::id_of, Document::place_of).
struct RunId {
    constexpr RunId() = default;
    constexpr explicit RunId(int64_t n) : number(n) {}

    int64_t number = -1;
    bool valid() const { return number >= 0; }
    auto operator<=>(const RunId&) const = default;
};

/// A run of a prompt of an open trace; `document` is Document::id.
struct RunKey {
    int document = -1;
    int prompt = 0;
    RunId run;
    bool valid() const { return document >= 0 && run.valid(); }
    /// What an ImGui id or a task is called after it.
    std::string text() const { return std::to_string(document) + '.' + std::to_string(run.number); }
    auto operator<=>(const RunKey&) const = default;
};

/// What is pointed at. −1 where nothing of the kind is.
struct Cursor {
    RunKey run;
    int layer = -1;
    int kv_head = -1;
    int query_head = -1;  ///< a head of the kv_head's group, where one was meant
    int64_t first_token = -1;
    int64_t last_token = -1;  ///< inclusive
    int step = -1;            ///< decode step

    bool has_tokens() const { return first_token >= 0; }
    bool contains(int64_t token) const { return has_tokens() && token >= first_token && token <= last_token; }
    bool operator==(const Cursor&) const = default;
};

/// The sticky selection, with a browser's back and forward.
class Selection {
 public:
    /// By value: what a view holds stays as it was when the same frame selects something else.
    Cursor current() const { return history_[at_]; }

    /// A move that is no other place (the same cursor) leaves no trace.
    void set(const Cursor& cursor);
    /// The same, of a place that somebody asks for: it comes into view also where it is selected already.
    void go_to(const Cursor& cursor) {
        set(cursor);
        ++n_asked_;
    }
    int n_asked() const { return n_asked_; }
    /// The cursor moved to a run: layer, head and tokens stay within a prompt.
    Cursor cursor_at(const RunKey& key) const;
    /// The cursor where it is in that prompt, else one that says nothing but the prompt.
    Cursor cursor_in(int document, int prompt) const;
    /// Moves that keep the rest: of a run, what cursor_at() keeps.
    void select_run(const RunKey& key) { set(cursor_at(key)); }
    /// @param extend the selected tokens up to this one, else this one alone
    void select_token(int64_t token, bool extend = false);
    void select_layer(int layer);
    void select_head(int layer, int kv_head, int query_head = -1);
    void select_step(int step);
    /// Nothing but the run stays selected.
    void deselect();

    /// A run is gone: all places that named it name none.
    void forget(const RunKey& run);
    void forget_document(int document);
    bool can_go_back() const { return at_ > 0; }
    bool can_go_forward() const { return at_ + 1 < history_.size(); }
    void back();
    void forward();

 private:
    void drop_repeated();

    static constexpr size_t most = 500;
    std::vector<Cursor> history_{Cursor{}};
    size_t at_ = 0;
    int n_asked_ = 0;
};

}  // namespace kvscope::gui
