package flagfile

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/pflag"
	yaml "go.yaml.in/yaml/v3"

	"github.com/starling-network/starling/cmd/starling/terminal"
)

// kiln is a command with a flag of every kind.
type kiln struct {
	name, glaze string
	heat        uint64
	shelves     int
	gas         bool
	pots        []string
}

func (k *kiln) form() Form {
	f := pflag.NewFlagSet("fire", pflag.ContinueOnError)
	f.StringVar(&k.name, "name", "", "of the kiln")
	f.Var(OneOf(&k.glaze, "none", "clear", "tin"), "glaze", "what goes over it")
	f.Uint64Var(&k.heat, "heat", 900, "degrees")
	f.IntVar(&k.shelves, "shelves", 3, "to fill")
	f.BoolVar(&k.gas, "with-gas", true, "what it burns")
	f.StringSliceVar(&k.pots, "pot", []string{"mug"}, "what to fire")
	f.String("config", "", "file")
	return Form{Kind: "Kiln", Flags: f, Except: []string{"config"}}
}

const head = "apiVersion: starling/v1\nkind: Kiln\n"

func read(t *testing.T, f Form, text string) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kiln.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return f.Read(path)
}

func TestKeysAreFlags(t *testing.T) {
	k := &kiln{}
	f := k.form()
	if err := f.Flags.Parse([]string{"--heat", "1200"}); err != nil {
		t.Fatal(err)
	}
	err := read(t, f, head+"name: \"7\"\nglaze: tin\nheat: 1000\nshelves: 0x10\nwith-gas: false\npot: [\"a,b\", c]\n")
	if err != nil || k.name != "7" || k.glaze != "tin" || k.shelves != 16 || k.gas ||
		!slices.Equal(k.pots, []string{"a,b", "c"}) {
		t.Errorf("%+v (%v)", k, err)
	}
	if k.heat != 1200 {
		t.Errorf("the file won over the command line: %d", k.heat)
	}
	if !f.Flags.Changed("name") || f.Flags.Changed("config") {
		t.Error("who was given")
	}
	k = &kiln{}
	f = k.form()
	if err := read(t, f, head+"with-gas: true\n"); err != nil || f.Flags.Changed("with-gas") {
		t.Errorf("a flag that has its value already counts as given (%v)", err)
	}
}

// schema compiles the schema of a form.
func schema(t testing.TB, f Form) func(text string) error {
	t.Helper()
	written, err := f.Schema("A kiln")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(written)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("kiln", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("kiln")
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) error {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			return err
		}
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if v, err = jsonschema.UnmarshalJSON(strings.NewReader(string(b))); err != nil {
			return err
		}
		return s.Validate(v)
	}
}

// An error is reported with its place and code, and the schema refuses it too, as far as a schema can.
func TestRefuses(t *testing.T) {
	for text, want := range map[string]string{
		head + "nmae: a\n": `3:1 CONFIG_UNKNOWN_KEY did you mean name?`,
		head + "furnace: a\n": `3:1 CONFIG_UNKNOWN_KEY remove it; the keys are apiVersion, kind, ` +
			`glaze, heat, name, pot, shelves, with-gas`,
		head + "config: a\n": `3:1 CONFIG_UNKNOWN_KEY remove it; the keys are apiVersion, kind, ` +
			`glaze, heat, name, pot, shelves, with-gas`,
		head + "glaze: lead\n": `3:8 CONFIG_BAD_VALUE see --glaze in the help of the command`,
		head + "heat: hot\n":   `3:7 CONFIG_WRONG_TYPE give a whole number`,
		head + "heat: -1\n":    `3:7 CONFIG_BAD_VALUE see --heat in the help of the command`,
		head + "heat: 1.5\n":   `3:7 CONFIG_WRONG_TYPE give a whole number`,
		head + "name: 7\n": `3:7 CONFIG_WRONG_TYPE give text (in quotes if it looks like ` +
			`something else)`,
		head + "name:\n": `3:6 CONFIG_WRONG_TYPE give text (in quotes if it looks like ` +
			`something else)`,
		head + "with-gas: 1\n":                         `3:11 CONFIG_WRONG_TYPE give true or false`,
		head + "pot: mug\n":                            `3:6 CONFIG_WRONG_TYPE give a list such as [a, b]`,
		head + "pot: [1]\n":                            `3:6 CONFIG_WRONG_TYPE give a list such as [a, b]`,
		head + "pot: {a: b}\n":                         `3:6 CONFIG_WRONG_TYPE give a list such as [a, b]`,
		"kind: Kiln\n":                                 `1:1 CONFIG_MISSING_KEY add apiVersion: starling/v1`,
		"apiVersion: starling/v1\nkindd: Kiln\n":       `2:1 CONFIG_UNKNOWN_KEY did you mean kind?`,
		"apiVersion: starling/v2\nkind: Kiln\n":        `1:13 CONFIG_BAD_VALUE write apiVersion: starling/v1`,
		"apiVersion: starling/v1\nkind: TrainingJob\n": `2:7 CONFIG_BAD_VALUE write kind: Kiln`,
		"- a\n": `1:1 CONFIG_BAD_YAML start from examples/worker.yaml`,
	} {
		problems := terminal.Problems(read(t, (&kiln{}).form(), text))
		p := problems[0]
		at := p.Place[strings.Index(p.Place, ".yaml:")+len(".yaml:"):]
		if got := at + " " + p.Code + " " + p.Fix; len(problems) != 1 || got != want || p.Why == "" {
			t.Errorf("%q: %q, want %q; %d problems", text, got, want, len(problems))
		}
		if schema(t, (&kiln{}).form())(text) == nil {
			t.Errorf("%q: the schema takes it", text)
		}
	}
	for text, want := range map[string]string{ // of which a schema sees nothing
		"":                                   "CONFIG_BAD_YAML",
		head + "name: [\n":                   "CONFIG_BAD_YAML",
		head + "---\nname: a\n":              "CONFIG_BAD_YAML",
		head + "name: a\nname: b\n":          "CONFIG_DUPLICATE_KEY",
		head + strings.Repeat("#", MaxBytes): "CONFIG_BAD_YAML",
	} {
		if problems := terminal.Problems(read(t, (&kiln{}).form(), text)); problems[0].Code != want {
			t.Errorf("%.40q: %+v", text, problems)
		}
	}
	if err := (&kiln{}).form().Read("nowhere.yaml"); terminal.Problems(err)[0].Code != "CONFIG_FILE_NOT_FOUND" {
		t.Error(err)
	}
	if all := terminal.Problems(read(t, (&kiln{}).form(), "heat: hot\npot: mug\nx: 1\n")); len(all) != 5 {
		t.Errorf("%d problems are said of five", len(all))
	}
}

// FuzzRead: whatever a file says, reading it ends, and what is taken the schema takes.
func FuzzRead(f *testing.F) {
	f.Add(head + "name: a\npot: [b]\nheat: 1_000\nwith-gas: no\n")
	f.Add("a: &x [*x]\n")
	holds := schema(f, (&kiln{}).form())
	f.Fuzz(func(t *testing.T, text string) {
		r := &reader{Form: (&kiln{}).form(), path: "kiln.yaml", line: map[string]int{}, meant: map[string]bool{}}
		r.document([]byte(text))
		if err := errors.Join(r.problems...); err == nil {
			if err := holds(text); err != nil {
				t.Errorf("the schema refuses %q: %v", text, err)
			}
		}
	})
}
