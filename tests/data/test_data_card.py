"""The data card: the same facts in text and in HTML."""

import html

import bayesatk as bk

DATA = bk.tally(
    {"<b>a & b</b>": [[1, 0, None], [1, 1]], "b": [[1, 1, 1], [0]]},
    missing="ignore",
    answers={"<b>a & b</b>": [["4", "5", ""], ["<i>", "<i>"]], "b": [["4", "4", "4"], ["x"]]},
)


def test_the_notebook_shows_what_the_text_says():
    page = DATA._repr_html_()
    assert html.unescape(page) == f"<pre>{DATA.card()}</pre>"


def test_labels_are_text_and_not_markup():
    page = DATA._repr_html_()
    assert "<b>" not in page
    assert "<i>" not in page
    assert "&lt;b&gt;a &amp; b&lt;/b&gt;" in page
