package card

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/internal/inputs"
)

func TestLicense(t *testing.T) {
	for spdx, want := range map[string][2]string{
		"": {}, "Apache-2.0": {"apache-2.0"}, " MIT": {"mit"}, "AGPL-3.0-only": {"agpl-3.0"}, "GPL-2.0-or-later": {"gpl-2.0"},
		"ODbL-1.0": {"odbl"}, "openrail++": {"openrail++"}, "EUPL-1.2": {"other", "eupl-1.2"}, "other": {"other", "other"},
		"Our own: v1": {"other", "our-own-v1"}, "?": {"other", "unnamed"},
	} {
		if word, name := license(spdx); word != want[0] || name != want[1] {
			t.Errorf("%q is %q, %q, want %q", spdx, word, name, want)
		}
	}
}

// TestCardPassesTheHubsSchema holds cards of every kind, and every license of the list, to the type of their front
// matter that Hugging Face's own client declares.
func TestCardPassesTheHubsSchema(t *testing.T) {
	clients := filepath.Join("..", "..", "web", "clients")
	for _, name := range []string{"typescript", "@huggingface/hub", "@huggingface/tasks", "yaml"} {
		if _, err := os.Stat(filepath.Join(clients, "node_modules", name)); err != nil {
			t.Skipf("the npm package %s is not installed: cd web/clients && npm ci --ignore-scripts --omit=optional", name)
		}
	}
	kinds := []func(c *Card){
		func(*Card) {},
		func(c *Card) { c.License, c.Perplexity = "", 0 },
		func(c *Card) { c.License, c.BaseModel, c.Adapter = "EUPL-1.2", "HuggingFaceTB/SmolLM2-135M", true },
		func(c *Card) { c.BaseModel, c.Name = "./base", "a: 'b' #c" },
	}
	for _, l := range hubLicenses {
		kinds = append(kinds, func(c *Card) { c.License = l })
	}
	dir, args := t.TempDir(), []string{"card.mjs"}
	for i, change := range kinds {
		c, err := Read(run())
		if err != nil {
			t.Fatal(err)
		}
		change(c)
		args = append(args, filepath.Join(dir, fmt.Sprintf("%d.md", i)))
		if err := os.WriteFile(args[i+1], []byte(written(t, c)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	inputs.Of(t, filepath.Join(clients, args[0]))
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Dir = clients
	var errs bytes.Buffer
	cmd.Stderr = &errs
	raw, err := cmd.Output()
	var wrong [][]string
	if err != nil || json.Unmarshal(raw, &wrong) != nil || len(wrong) != len(kinds) {
		t.Fatalf("%v: %s%s", err, raw, errs.String())
	}
	for i, list := range wrong {
		if len(list) > 0 {
			t.Errorf("card %d: %q", i, list)
		}
	}
}
