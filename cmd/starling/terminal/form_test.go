package terminal

import (
	"strings"
	"testing"
)

type sheep struct {
	ID    string   `json:"id"`
	Legs  int      `json:"legs"`
	Marks []string `json:"marks,omitempty"`
}

func TestForms(t *testing.T) {
	flock := map[string]any{"sheep": []sheep{{"dolly", 4, []string{"a<b", "no"}}, {"shaun", 3, nil}}, "height": 12}
	one := sheep{"dolly", 4, nil}
	for _, c := range []struct {
		form   Form
		answer any
		want   string
	}{
		{JSON, flock, `{"height":12,"sheep":[{"id":"dolly","legs":4,"marks":["a<b","no"]},{"id":"shaun","legs":3}]}` + "\n"},
		{JSONL, flock, `{"id":"dolly","legs":4,"marks":["a<b","no"]}` + "\n" + `{"id":"shaun","legs":3}` + "\n"},
		{Name, flock, "dolly\nshaun\n"},
		{YAML, flock, "height: 12\nsheep:\n  - id: dolly\n    legs: 4\n    marks:\n      - a<b\n      - \"no\"\n  - id: shaun\n    legs: 3\n"},
		{JSONL, one, `{"id":"dolly","legs":4}` + "\n"},
		{YAML, one, "id: dolly\nlegs: 4\n"},
		{Name, one, "dolly\n"},
		{Name, map[string]any{"receipts": []map[string]any{{"seq": 12345678901}}}, "12345678901\n"},
		{Name, map[string]any{"sheep": []sheep{}}, ""},
		{JSONL, map[string]any{"sheep": []sheep{}}, ""},
		{JSONL, map[string]any{"a": []sheep{one}, "b": []sheep{one}}, `{"a":[{"id":"dolly","legs":4}],"b":[{"id":"dolly","legs":4}]}` + "\n"},
	} {
		var b strings.Builder
		if err := c.form.Print(&b, c.answer); err != nil || b.String() != c.want {
			t.Errorf("%s of %v: %v\n%s\nwant\n%s", c.form, c.answer, err, b.String(), c.want)
		}
	}
	var b strings.Builder
	if err := Name.Print(&b, map[string]int{"height": 1}); ExitCode(err) != ExitUsage {
		t.Errorf("a name of nothing: %v", err)
	}
	if Table.Machine() || Wide.Machine() || !YAML.Machine() {
		t.Error("who reads what")
	}
}

// A table has the columns that are wide only where it is asked for them.
func TestColumns(t *testing.T) {
	for f, want := range map[Form]string{Table: "NAME   LEGS\ndolly  4\n-      3\n", Wide: "NAME   LEGS  COAT\ndolly  4     wool\n-      3     a b\n"} {
		var b strings.Builder
		c := NewColumns(&b, f, "NAME", "LEGS", "+COAT")
		c.Row("dolly", 4, "wool")
		c.Row("", 3, "a\tb")
		if err := c.Flush(); err != nil || b.String() != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", f, err, b.String(), want)
		}
	}
}
