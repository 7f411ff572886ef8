package terminal

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

type sheep struct {
	ID    string   `json:"id"`
	Legs  int      `json:"legs"`
	Marks []string `json:"marks,omitempty"`
}

func TestForms(t *testing.T) {
	id := func(s sheep) string { return s.ID }
	flock := []sheep{{"dolly", 4, []string{"a<b", "no"}}, {"shaun", 3, nil}}
	herd := List(map[string]any{"sheep": flock, "height": 12}, flock, id)
	one := One(flock[1], "shaun")
	none := List(map[string]any{"height": 12, "sheep": []sheep{}}, []sheep{}, id)
	marked := One(map[string]any{"marks": []sheep{}}, "") // a list of it is not the list that it is
	for name, c := range map[string]struct {
		answer                   Answer
		json, jsonl, yaml, names string
	}{
		"a list": {herd, `{"height":12,"sheep":[{"id":"dolly","legs":4,"marks":["a<b","no"]},{"id":"shaun","legs":3}]}` +
			"\n",
			`{"id":"dolly","legs":4,"marks":["a<b","no"]}` + "\n" + `{"id":"shaun","legs":3}` + "\n",
			"height: 12\nsheep:\n  - id: dolly\n    legs: 4\n    marks:\n      - a<b\n      - \"no\"\n  - id: shaun\n    " +
				"legs: 3\n", "dolly\nshaun\n"},
		"one thing": {one, `{"id":"shaun","legs":3}` + "\n", `{"id":"shaun","legs":3}` + "\n", "id: shaun\nlegs: 3\n",
			"shaun\n"},
		"an empty list":  {none, `{"height":12,"sheep":[]}` + "\n", "", "height: 12\nsheep: []\n", ""},
		"no list at all": {Items("sheep", nil, id), `{"sheep":[]}` + "\n", "", "sheep: []\n", ""},
		"items": {Items("sheep", flock[1:], id), `{"sheep":[{"id":"shaun","legs":3}]}` + "\n",
			`{"id":"shaun","legs":3}` + "\n", "sheep:\n  - id: shaun\n    legs: 3\n", "shaun\n"},
		"without a name": {marked, `{"marks":[]}` + "\n", `{"marks":[]}` + "\n", "marks: []\n", "USAGE"},
		"a document": {One(json.RawMessage("{\n  \"a\": 1\n}\n"), "a.json"), `{"a":1}` + "\n", `{"a":1}` + "\n",
			"a: 1\n", "a.json\n"},
	} {
		for form, want := range map[Form]string{JSON: c.json, JSONL: c.jsonl, YAML: c.yaml, Name: c.names} {
			var b strings.Builder
			err := form.Print(&b, c.answer)
			if want == "USAGE" {
				if ExitCode(err) != ExitUsage || b.String() != "" {
					t.Errorf("%s of %s: %v %q", form, name, err, b.String())
				}
			} else if err != nil || b.String() != want {
				t.Errorf("%s of %s: %v\n%s\nwant\n%s", form, name, err, b.String(), want)
			}
		}
	}
	if Table.Machine() || Wide.Machine() || !YAML.Machine() {
		t.Error("who reads what")
	}
}

// A table has the columns that are wide only where it is asked for them.
func TestColumns(t *testing.T) {
	for f, want := range map[Form]string{Table: "NAME   LEGS\ndolly  4\n-      3\n",
		Wide: "NAME   LEGS  COAT\ndolly  4     wool\n-      3     a b\n"} {
		var b strings.Builder
		c := NewColumns(&b, f, "NAME", "LEGS", "+COAT")
		c.Row("dolly", 4, "wool")
		c.Row("", 3, "a\tb")
		if err := c.Flush(); err != nil || b.String() != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", f, err, b.String(), want)
		}
	}
}

// On a terminal that is narrower than a table the longest cells lose their middle, and every line fits.
func TestColumnsFit(t *testing.T) {
	var b bytes.Buffer
	c := NewColumns(&b, Table, "ACCOUNT", "STAKE")
	c.width = 30
	c.Row("starling10th7tkvfragpe2xyqm85rr920ah03txzkm0e83", "100.00")
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > 30 {
			t.Errorf("%q has %d columns", line, n)
		}
	}
	if len(lines) != 2 || !strings.HasPrefix(lines[1], "starling10th7t") || !strings.Contains(lines[1], "m0e83  100.00") {
		t.Errorf("got\n%s", b.String())
	}
}
