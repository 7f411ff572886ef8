package committee

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
)

// The models of a member are served once those of its round are entered, and no other file of its machine is.
func TestShelf(t *testing.T) {
	dir := t.TempDir()
	s := newShelf(filepath.Join(dir, "rounds"), false)
	for path, text := range map[string]string{filepath.Join(s.at(3), "entry.cbor"): "list",
		filepath.Join(dir, "key"): "x"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mux := http.NewServeMux()
	mux.Handle(pattern, s)
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	if code, _ := get("/rounds/3/entry.cbor"); code != http.StatusNotFound {
		t.Errorf("a model is served before all are entered: %d", code)
	}
	s.publish(3)
	if code, text := get("/rounds/3/entry.cbor"); code != http.StatusOK || text != "list" {
		t.Errorf("%d %q", code, text)
	}
	for _, path := range []string{"/rounds/3/..%2f..%2fkey", "/rounds/x/entry.cbor", "/rounds/4/entry.cbor",
		"/rounds/3/none", "/rounds/3/..", "/rounds/3/."} {
		if code, text := get(path); code == http.StatusOK || text == "x" {
			t.Errorf("%s: %d %q", path, code, text)
		}
	}
}

func TestMean(t *testing.T) {
	of := func(x ...float32) []*tensor.Tensor {
		p := tensor.New(tensor.Make(tensor.Float32, len(x)))
		copy(p.F32(), x)
		return []*tensor.Tensor{p}
	}
	model, moves := of(1, 2), mean{}
	moves.add(model, of(0, 0))
	moves.add(model, of(1, 4))
	m := moves.tensors(model)
	if got := m[0].F32(); got[0] != 0.5 || got[1] != 0 {
		t.Error(got)
	}
}
