package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var decision = regexp.MustCompile(`(?m)^\| \[(\d+)\]\(([^)]+)\) \| (.+)\. \| ([\d, ]*)\|$`)

// TestDecisions holds the index of the decisions to their pages: the same titles, and what amends what on both sides.
func TestDecisions(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "adr", "0*.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := decision.FindAllStringSubmatch(read(t, "docs/adr/README.md"), -1)
	file, amends := map[string]string{}, map[string][]string{}
	for _, r := range rows {
		file[r[1]] = r[2]
		for _, n := range strings.FieldsFunc(r[4], func(c rune) bool { return c == ',' || c == ' ' }) {
			amends[n] = append(amends[n], r[1])
		}
	}
	if len(rows) != len(pages) {
		t.Errorf("docs/adr/README.md has %d rows for %d pages: one row \"| [N](FILE) | TITLE. | NUMBERS |\" each", len(rows),
			len(pages))
	}
	for _, r := range rows {
		text, err := os.ReadFile(filepath.Join("..", "..", "docs", "adr", r[2]))
		if err != nil {
			t.Error(err)
			continue
		}
		head, _, _ := strings.Cut(string(text), "\n\n##")
		if want := fmt.Sprintf("# %s. %s\n", r[1], r[3]); !strings.HasPrefix(head, want) {
			t.Errorf("docs/adr/%s does not begin with %q", r[2], want)
		}
		if !strings.Contains(head, "\nStatus: ") {
			t.Errorf("docs/adr/%s has no status", r[2])
		}
		for _, by := range amends[r[1]] {
			if link := "[" + by + "](" + file[by] + ")"; !strings.Contains(head, link) {
				t.Errorf("docs/adr/%s does not say \"Amended by %s\"", r[2], link)
			}
		}
		if n, err := strconv.Atoi(r[1]); err != nil || !strings.HasPrefix(r[2], fmt.Sprintf("%04d-", n)) {
			t.Errorf("docs/adr/%s is not of number %s", r[2], r[1])
		}
	}
}
