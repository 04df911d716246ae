#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "app/figures/export_figure.h"
#include "app/figures/figure_format.h"
#include "app/figures/layout.h"
#include "common/whole_file.h"
#include "tests/figures/picture.h"
#include "tests/trace/sample_trace.h"

using namespace kvscope::figures;
using namespace kvscope::analysis;
using Catch::Matchers::Contains;
namespace trace = kvscope::trace;

namespace {

struct Answer {
    int status = -1;
    std::string text;
};

Answer run(const std::string& command) {
    Answer answer;
    FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
    if (pipe == nullptr) return answer;
    char buffer[4096];
    for (size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) answer.text.append(buffer, n);
    answer.status = ::pclose(pipe);
    return answer;
}

/// Requires poppler-utils; tests say so if it is missing.
bool has_poppler() {
    const bool found = run("command -v pdffonts pdfinfo pdfimages pdftoppm").status == 0;
    if (!found) WARN("skipped: pdffonts, pdfinfo, pdfimages or pdftoppm (Debian: poppler-utils) are missing");
    return found;
}

std::string saved(const trace::sample::TemporaryFolder& folder, const std::string& bytes) {
    std::string path = (folder / "figure.pdf").string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
}

Figure large_map() {
    Figure figure = test::map_figure(30, 5000, 3);
    for (size_t i = 0; i < test::map_of(figure).values.size(); i += 37) test::map_of(figure).values[i] = 1 + (i % 3);
    figure.legend.push_back({"snapkv", LegendEntry::Symbol::line, {}});
    return figure;
}

/// Sets an environment variable during its lifetime.
class Environment {
 public:
    Environment(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
    ~Environment() { ::unsetenv(name_); }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;

 private:
    const char* name_;
};

}  // namespace

TEST_CASE("PDF: fonts are embedded as subsets, none of them Type 3") {
    if (!has_poppler()) return;
    const trace::sample::TemporaryFolder folder;
    Figure figure = large_map();
    figure.panels[0].shapes.emplace_back(TextLabel{5, 5, "\u00b7Paris\u21b5", {}, true});
    const Answer fonts = run("pdffonts " + saved(folder, render_pdf(figure, {})));
    REQUIRE(fonts.status == 0);
    CHECK_THAT(fonts.text, !Contains("Type 3"));
    std::istringstream lines(fonts.text);
    std::string line;
    int n_fonts = 0;
    for (int i = 0; std::getline(lines, line); ++i) {
        if (i < 2) continue;  // heading
        ++n_fonts;
        CHECK_THAT(line, Contains(" yes yes "));
        CHECK(line.find('+') == 6);
    }
    CHECK(n_fonts >= 2);
}

TEST_CASE("PDF: a map of many cells is one image without interpolation, and a small map has no image") {
    if (!has_poppler()) return;
    const trace::sample::TemporaryFolder folder;
    Answer images = run("pdfimages -list " + saved(folder, render_pdf(large_map(), {})));
    CHECK_THAT(images.text, Contains(" image ") && Contains(" no ") && !Contains(" yes "));
    images = run("pdfimages -list " + saved(folder, render_pdf(test::map_figure(9, 9, 3), {})));
    CHECK_THAT(images.text, !Contains(" image "));
}

TEST_CASE("PDF: title, caption, recipe and date are in the document information") {
    if (!has_poppler()) return;
    const trace::sample::TemporaryFolder folder;
    Figure figure = test::map_figure(2, 2, 3);
    figure.created_utc = "2026-01-02T03:04:05Z";
    ExportOptions options;
    options.creator = "kvscope 9.8.7";
    Answer info = run("pdfinfo -isodates " + saved(folder, render_pdf(figure, options)));
    CHECK_THAT(info.text, Contains("A map") && Contains("What is shown.") &&
                              Contains("Model: tiny <1 & 2>; Run: snapkv") && Contains("kvscope 9.8.7") &&
                              Contains("2026-01-02T03:04:05Z"));
    {
        const Environment epoch("SOURCE_DATE_EPOCH", "1000000000");
        info = run("pdfinfo -isodates " + saved(folder, render_pdf(figure, options)));
        CHECK_THAT(info.text, Contains("2001-09-09T01:46:40Z"));
    }
    {
        const Environment epoch("SOURCE_DATE_EPOCH", "yesterday");
        CHECK_THROWS_WITH(render_pdf(figure, options), Contains("yesterday"));
    }
    figure.created_utc.clear();
    info = run("pdfinfo " + saved(folder, render_pdf(figure, options)));
    CHECK_THAT(info.text, !Contains("CreationDate"));
}

TEST_CASE("PDF: pixels of a rendered page have the map's colors") {
    if (!has_poppler()) return;
    const trace::sample::TemporaryFolder folder;
    Figure figure = test::map_figure(GENERATE(3, 90), 60, 3);  // as rectangles, then as an image
    auto& map = test::map_of(figure);
    for (size_t row = 0; row < map.rows; ++row) {
        for (size_t column = 30; column < 60; ++column) map.values[row * 60 + column] = 2;
    }
    const std::string path = saved(folder, render_pdf(figure, {}));
    REQUIRE(run("pdftoppm -r 144 " + path + " " + (folder / "page").string()).status == 0);
    std::ifstream in(folder / "page-1.ppm", std::ios::binary);
    std::string magic;
    int width = 0;
    int height = 0;
    int depth = 0;
    in >> magic >> width >> height >> depth;
    in.get();
    REQUIRE(magic == "P6");
    std::string pixels(static_cast<size_t>(width * height * 3), '\0');
    in.read(pixels.data(), static_cast<std::streamsize>(pixels.size()));
    const Box data = lay_out(figure).panels[0].data;
    const auto near = [&](double x_share, double y_share, Rgb wanted) {
        const auto x = static_cast<size_t>((data.x + x_share * data.width) * 2);
        const auto y = static_cast<size_t>((data.y + y_share * data.height) * 2);
        const auto* p =
            reinterpret_cast<const unsigned char*>(pixels.data()) + (y * static_cast<size_t>(width) + x) * 3;
        return std::abs(p[0] - wanted.r) <= 2 && std::abs(p[1] - wanted.g) <= 2 && std::abs(p[2] - wanted.b) <= 2;
    };
    const Rgb two = color_at(ColorMap::viridis_reversed, 0.5);
    for (const double y : {0.05, 0.35, 0.5, 0.66, 0.95}) {
        CHECK(near(0.25, y, {255, 255, 255}));
        CHECK(near(0.51, y, two));
        CHECK(near(0.75, y, two));
        CHECK(near(0.99, y, two));
    }
}

TEST_CASE("vector files: the same figure gives the same file, whatever was drawn before") {
    const Figure figure = large_map();
    const std::string pdf = render_pdf(figure, {});
    const std::string svg = render_svg(figure, {});
    render_svg(test::map_figure(70, 70, 3), {});
    CHECK(render_pdf(figure, {}) == pdf);
    CHECK(render_svg(figure, {}) == svg);
}

TEST_CASE("SVG: the recipe is escaped in <desc>, maps stay sharp, and every referenced name is defined") {
    const std::string svg = render_svg(large_map(), {});
    CHECK_THAT(svg, Contains("<title>A map</title>") && Contains("Model: tiny &lt;1 &amp; 2&gt;"));
    CHECK_THAT(svg, Contains("image-rendering:pixelated") && !Contains("<pattern"));
    size_t n_uses = 0;
    for (size_t at = svg.find("href=\"#"); at != std::string::npos; at = svg.find("href=\"#", at + 1)) {
        const std::string name = svg.substr(at + 7, svg.find('"', at + 7) - at - 7);
        REQUIRE(svg.find("id=\"" + name + "\"") != std::string::npos);
        ++n_uses;
    }
    CHECK(n_uses > 20);
}

TEST_CASE("SVG: a text drawn before does not change the band around a line") {
    Figure figure = test::map_figure(3, 3, 3);
    Line line;
    line.x = {0, 1, 2};
    line.y = {1, 1, 1};
    line.low = {0.5, 0.5, 0.5};
    line.high = {1.5, 1.5, 1.5};
    const auto band_of = [](const Figure& drawn) {
        const std::string svg = render_svg(drawn, {});
        const size_t fill = svg.find("fill-opacity:0.2");
        REQUIRE(fill != std::string::npos);
        const size_t path = svg.find(" d=\"", fill);
        return svg.substr(path, svg.find('"', path + 4) - path);
    };
    figure.panels[0].shapes.emplace_back(line);
    const std::string alone = band_of(figure);
    TextLabel label;
    label.x = label.y = 2;
    label.text = "full";
    figure.panels[0].shapes.insert(figure.panels[0].shapes.begin() + 1, label);
    CHECK(band_of(figure) == alone);
}

TEST_CASE("SVG: bands are drawn before all lines, so that the band of one line covers no other line") {
    Figure figure = test::map_figure(1, 1, 3);
    figure.panels[0].shapes.clear();
    for (const double y : {0.2, 0.3}) {
        Line line;
        line.x = {0, 1};
        line.y = {y, y};
        line.low = {y - 0.1, y - 0.1};
        line.high = {y + 0.1, y + 0.1};
        line.style.color = Rgb{1, 2, 3};
        figure.panels[0].shapes.emplace_back(line);
    }
    const std::string svg = render_svg(figure, {});
    const std::string stroke = "stroke:rgb(0.392157%";  // 1 of 255
    REQUIRE(svg.find(stroke) != std::string::npos);
    CHECK(svg.rfind("fill-opacity:0.2") < svg.find(stroke));
}

TEST_CASE("text that is invalid in UTF-8 or XML gives a valid file") {
    Figure figure = test::map_figure(2, 2, 3);
    const std::string bad("\xff caf\xc3\xa9 \x01 <&> \xe4", 15);
    figure.title = figure.caption = figure.panels[0].title = figure.panels[0].x.title = bad;
    figure.show_title = true;
    figure.recipe = {{"Run", bad}};
    figure.legend.push_back({bad, LegendEntry::Symbol::patch, {}});
    CHECK_THAT(render_pdf(figure, {}), Catch::Matchers::StartsWith("%PDF-"));
    CHECK_THAT(render_svg(figure, {}), Contains("<title>\ufffd caf\u00e9  &lt;&amp;&gt; \ufffd</title>"));
    CHECK(render_png(figure, {}).find("\ufffd caf\u00e9") != std::string::npos);
}

TEST_CASE("export: the extension decides the format of images and numbers, for every figure") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "t.h5");
    const trace::Reader reader(folder / "t.h5");
    const auto begins = [&](const std::filesystem::path& path, const std::string& mark) {
        std::ifstream in(path, std::ios::binary);
        std::string begin(mark.size(), '\0');
        in.read(begin.data(), static_cast<std::streamsize>(mark.size()));
        return begin == mark;
    };
    for (const FigureDefinition& definition : figure_definitions()) {
        for (const auto& format : figure_formats()) {
            const auto path = folder / (definition.name + "." + std::string(format.extension));
            export_figure(reader, definition, {}, path, {}, false);
            CHECK(std::filesystem::file_size(path) > 0);
        }
        CHECK(begins(folder / (definition.name + ".pdf"), "%PDF-"));
        CHECK(begins(folder / (definition.name + ".svg"), "<?xml"));
        CHECK(begins(folder / (definition.name + ".png"), "\x89PNG"));
        CHECK(begins(folder / (definition.name + ".json"), "["));
        CHECK(begins(folder / (definition.name + ".html"), "<!DOCTYPE html>"));
    }
    const FigureDefinition& jsd = figure_definition("jsd");
    CHECK_THROWS_AS(export_figure(reader, jsd, {}, folder / "jsd.pdf", {}, false), kvscope::FileExists);
    CHECK_NOTHROW(export_figure(reader, jsd, {}, folder / "jsd.pdf", {}, true));
    CHECK_THROWS_WITH(export_figure(reader, jsd, {}, folder / "jsd.docx", {}, false),
                      Contains(".pdf") && Contains(".docx"));
    CHECK_THROWS_WITH(export_figure(reader, jsd, {}, folder / "jsd", {}, false), Contains("no extension"));
    CHECK(figure_format_for("A.PDF").extension == "pdf");
}

TEST_CASE("pages: one PDF contains all pages, SVG and PNG have one file per page") {
    const trace::sample::TemporaryFolder folder;
    Figure figure = test::map_figure(9, 9, 3);
    figure.panels.push_back(figure.panels.front());
    figure.panels.back().page = 1;
    const Exported what{[&] { return figure; }, {}};
    CHECK(export_figure(what, folder / "f.pdf", {}, false) == std::vector{folder / "f.pdf"});
    CHECK(export_figure(what, folder / "f.svg", {}, false) == std::vector{folder / "f-1.svg", folder / "f-2.svg"});
    CHECK(export_figure(what, folder / "f.png", {}, false) == std::vector{folder / "f-1.png", folder / "f-2.png"});
    CHECK_FALSE(std::filesystem::exists(folder / "f.png"));
    CHECK_THROWS_AS(export_figure(what, folder / "f.svg", {}, false), kvscope::FileExists);
    if (!has_poppler()) return;
    const Answer info = run("pdfinfo " + (folder / "f.pdf").string());
    CHECK_THAT(info.text, Contains("Pages:           2"));
}

TEST_CASE("pages: existing files are known before an export, and only confirmed ones are replaced") {
    const trace::sample::TemporaryFolder folder;
    Figure figure = test::map_figure(9, 9, 3);
    figure.panels.push_back(figure.panels.front());
    figure.panels.back().page = 1;
    const Exported what{[&] { return figure; }, {}};
    using Files = std::vector<std::filesystem::path>;
    CHECK(files_to_replace(folder / "f.svg", true).empty());
    CHECK(files_to_replace(folder / std::string(300, 'x'), true).empty());
    for (const char* name : {"f-2.svg", "f-10.svg", "f-02.svg", "f-0.svg", "f-a.svg", "f-.svg", "f-3.png", "g-1.svg"})
        std::ofstream(folder / name) << "mine";
    CHECK(files_to_replace(folder / "f.svg", false).empty());
    CHECK(files_to_replace(folder / "f.pdf", true).empty());
    const Files there = files_to_replace(folder / "f.svg", true);
    CHECK(there == Files{folder / "f-2.svg", folder / "f-10.svg"});
    CHECK_THROWS_AS(export_figure(what, folder / "f.svg", {}, Files{folder / "f.svg"}), kvscope::FileExists);
    CHECK_FALSE(std::filesystem::exists(folder / "f-1.svg"));
    CHECK(std::filesystem::file_size(folder / "f-2.svg") == 4);
    CHECK(export_figure(what, folder / "f.svg", {}, there) == Files{folder / "f-1.svg", folder / "f-2.svg"});
    CHECK(std::filesystem::file_size(folder / "f-2.svg") > 4);
    CHECK(std::filesystem::file_size(folder / "f-10.svg") == 4);
    std::filesystem::create_symlink("nowhere", folder / "h.pdf");
    CHECK(files_to_replace(folder / "h.pdf", true) == Files{folder / "h.pdf"});
}

TEST_CASE("figures with several pages are known before they are made") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::Options long_one;
    long_one.n_tokens = 1200;
    long_one.n_layers = 1;
    trace::sample::write(folder / "long.h5", long_one);
    const trace::Reader reader(folder / "long.h5");
    for (const auto& definition : figure_definitions()) {
        if (!why_no_figure(definition, reader, {}).empty()) continue;
        CAPTURE(definition.name);
        if (split_into_pages(definition.make(reader, {})).size() > 1) CHECK(definition.may_have_pages);
    }
}

TEST_CASE("several figures: figures without data in the trace are omitted and named") {
    const trace::sample::TemporaryFolder folder;
    {
        trace::Writer writer(folder / "t.h5", trace::sample::recipe, {.generator = "sample"});
        writer.write_model(trace::sample::model());
        writer.write_prompt(0, trace::sample::prompt());
    }
    const trace::Reader reader(folder / "t.h5.part");
    std::vector<const FigureDefinition*> all;
    for (const auto& definition : figure_definitions()) all.push_back(&definition);
    const auto of_trace = [&](const FigureDefinition& definition) { return figure_to_export(definition, reader, {}); };
    const auto done = export_figures(all, of_trace, {folder / "t.svg", folder / "t.csv"}, {}, false);
    CHECK(done.written.size() + 2 * done.left_out.size() == 2 * all.size());
    CHECK(std::find(done.written.begin(), done.written.end(), folder / "t-jsd.csv") != done.written.end());
    for (const auto& path : done.written) CHECK(std::filesystem::file_size(path) > 0);
    const auto scores = std::find_if(done.left_out.begin(), done.left_out.end(),
                                     [](const LeftOut& each) { return each.figure == "task-scores"; });
    REQUIRE(scores != done.left_out.end());
    CHECK_THAT(scores->reason, Contains("the trace has no scores"));
    CHECK_THROWS_AS(export_figures(all, of_trace, {folder / "t.svg"}, {}, false), kvscope::FileExists);
}

TEST_CASE("several figures: a failing figure is named and stops no other, but an unwritable file stops all") {
    const trace::sample::TemporaryFolder folder;
    trace::sample::write(folder / "t.h5");
    const trace::Reader reader(folder / "t.h5");
    std::vector<const FigureDefinition*> definitions;
    for (const char* name : {"budgets", "jsd", "retention"}) definitions.push_back(&figure_definition(name));
    const auto failing_with = [&](auto fail) {
        return [&reader, fail](const FigureDefinition& definition) {
            Exported one = figure_to_export(definition, reader, {});
            if (definition.name == "jsd") one.check = fail;
            return one;
        };
    };
    const auto damaged = failing_with([] { throw trace::DamagedTrace("t.h5: not as expected"); });
    const auto done = export_figures(definitions, damaged, {folder / "t.svg", folder / "t.csv"}, {}, false);
    CHECK(done.written.size() == 4);
    CHECK(done.left_out.empty());
    REQUIRE(done.failed.size() == 1);
    CHECK(done.failed[0].figure == "jsd");
    CHECK(done.failed[0].reason == "t.h5: not as expected");
    CHECK(std::filesystem::exists(folder / "t-retention.csv"));
    const auto no_room = failing_with([] { throw LayoutError("174 mm are too little"); });
    const auto crowded = export_figures(definitions, no_room, {folder / "c.svg"}, {}, false);
    CHECK(crowded.written == std::vector{folder / "c-budgets.svg", folder / "c-retention.svg"});
    REQUIRE(crowded.failed.size() == 1);
    CHECK(crowded.failed[0].reason == "174 mm are too little");
    const auto full_disk = failing_with([] { throw kvscope::FileNotWritten("no room"); });
    CHECK_THROWS_AS(export_figures(definitions, full_disk, {folder / "u.svg"}, {}, false), kvscope::FileNotWritten);
}
