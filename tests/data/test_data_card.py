"""The data card: the same facts in text and in HTML."""

import re
from html.parser import HTMLParser

import bayesatk as bk

DATA = bk.tally(
    {"<b>a & b</b>": [[1, 0, None], [1, 1]], "b": [[1, 1, 1], [0]]},
    missing="ignore",
    answers={"<b>a & b</b>": [["4", "5", ""], ["<i>", "<i>"]], "b": [["4", "4", "4"], ["x"]]},
)


class Read(HTMLParser):
    """Rows of cells, items, and the tags that are open."""

    def __init__(self, page):
        super().__init__()
        self.open, self.rows, self.items, self.title = [], [], [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "li":
            self.items.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data
        elif self.open[-1] == "li":
            self.items[-1] += data
        else:
            self.title += data


def test_the_notebook_shows_what_the_text_says():
    found, text = Read(DATA._repr_html_()), DATA.card().splitlines()
    assert found.open == []
    assert found.title == text[0]
    assert found.rows[0] == re.split(r"  +", text[1].strip())
    below = [[cell for cell in row if cell] for row in found.rows[1:]]
    assert below == [re.split(r"  +", line.strip()) for line in text[2 : 2 + len(below)]]
    assert found.items == [line.strip() for line in text[2 + len(below) :]]
    assert any("worst" in row[-1] for row in below)
    assert any(item.startswith("answers:") for item in found.items)


def test_labels_are_text_and_not_markup():
    page = DATA._repr_html_()
    assert "<b>" not in page
    assert "<i>" not in page
    assert "&lt;b&gt;a &amp; b&lt;/b&gt;" in page


def test_data_without_notes_have_no_list():
    assert Read(bk.tally([[0, 1]])._repr_html_()).items == []
    assert "<ul>" not in bk.tally([[0, 1]])._repr_html_()
