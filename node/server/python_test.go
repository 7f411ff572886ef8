// The Python client is tested against the real server, in processes of their own.
package server_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/internal/inputs"
	"github.com/starling-network/starling/node/dashboard"
	"github.com/starling-network/starling/node/server"
)

const token = "0123456789abcdef"

// TestPython runs the tests of the client in the Python that is here.
func TestPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	data, tokens := t.TempDir(), filepath.Join(t.TempDir(), "tokens")
	var text strings.Builder
	for i := range 400 {
		fmt.Fprintf(&text, "number %d follows %d and so on\n", i+1, i)
	}
	for path, content := range map[string]string{tokens: token + " read,submit\n",
		filepath.Join(data, "text.txt"): text.String()} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	opened, ended := make(chan string, 1), make(chan error, 1)
	runs := t.TempDir()
	go func() {
		ended <- server.Serve(ctx, runs, dashboard.WebOptions{Listen: "127.0.0.1:0", Data: data, Tokens: tokens,
			Opened: func(url string) { opened <- url }})
	}()
	var url string
	select {
	case url = <-opened:
	case err := <-ended:
		t.Fatal(err)
	}
	client := filepath.Join("..", "..", "sdk", "python")
	inputs.Of(t, client)
	cmd := exec.CommandContext(t.Context(), python, "-W", "error::SyntaxWarning", "-m", "unittest", "tests.test_client",
		"tests.test_server",
		"tests.test_federated", "tests.test_trainer")
	cmd.Dir = client
	cmd.Env = append(os.Environ(), "STARLING_TEST_URL="+url, "STARLING_TEST_TOKEN="+token, "PYTHONDONTWRITEBYTECODE=1",
		"STARLING_URL=", "STARLING_TOKEN=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
