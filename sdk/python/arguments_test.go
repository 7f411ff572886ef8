package sdk_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v3"

	"github.com/starling-network/starling/client/job/foreign"
	"github.com/starling-network/starling/internal/inputs"
)

// The trainer makes of the arguments of Hugging Face's trainer what `starling job import` makes of a file with them.
func TestTrainerConvertsAsImport(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	const workers = "4" // of an imported job
	file := filepath.Join("..", "..", "client", "job", "foreign", "testdata", "hf-trainer.json")
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	imported, err := foreign.Convert(source, "x")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{}
	if err := yaml.Unmarshal(imported.File, &want); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), python, "-W", "ignore", "-c",
		"import json, sys; from starling import arguments; print(json.dumps(arguments.keys(json.load(open(sys.argv[1])), "+
			workers+")))", file)
	inputs.Of(t, ".")
	c.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	for path, value := range got {
		var at any = want
		for _, key := range strings.Split(path, ".") {
			section, _ := at.(map[string]any)
			at = section[key]
		}
		if one, two := plain(t, at), plain(t, value); !reflect.DeepEqual(one, two) {
			t.Errorf("%s is %v by the trainer, and %v by the import", path, two, one)
		}
	}
	if len(got) < 10 {
		t.Errorf("the trainer takes %d keys: %v", len(got), got)
	}
}

// plain is a value as JSON has it.
func plain(t *testing.T, v any) (out any) {
	t.Helper()
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
