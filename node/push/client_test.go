package push

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/starling-network/starling/internal/inputs"
	"github.com/starling-network/starling/internal/pushtest"
	"github.com/starling-network/starling/node/push/record"
)

// TestHuggingFaceClient uploads a model to the hub of the tests with Hugging Face's own client, and with this one:
// the hub takes both, and the repositories are equal.
func TestHuggingFaceClient(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node to run Hugging Face's client with")
	}
	clients := filepath.Join("..", "..", "web", "clients")
	if _, err := os.Stat(filepath.Join(clients, "node_modules", "@huggingface", "hub")); err != nil {
		t.Skip("Hugging Face's client is not installed: run `npm ci --ignore-scripts` in web/clients")
	}
	hub := pushtest.NewHub(t)
	dir, sent := model(t, 5<<20/2)
	names := slices.Sorted(maps.Keys(sent))
	inputs.Of(t, filepath.Join(clients, "upload.mjs"))
	cmd := exec.CommandContext(t.Context(), node, append([]string{"upload.mjs", hub.URL, "starling/theirs",
		pushtest.Token, dir}, names...)...)
	var out strings.Builder
	cmd.Dir, cmd.Stdout, cmd.Stderr = clients, &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if got := settled(t, Options{Dir: dir, Title: "tiny"}, "", "hf:starling/ours"); got[0].State != record.Done {
		t.Fatalf("%+v", got[0])
	}
	if diff := cmp.Diff(hub.Repo("starling/theirs"), hub.Repo("starling/ours")); diff != "" {
		t.Errorf("(-theirs +ours):\n%s", diff)
	}
}
