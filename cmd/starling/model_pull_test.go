package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A model of a hub is a folder that writes text; what the hub does not give is said with a code.
func TestModelPullFromHub(t *testing.T) {
	dir := llamaFolder(t)
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/models/bird/sings/revision/v1" {
			type file struct {
				Name string `json:"rfilename"`
			}
			var files []file
			entries, err := os.ReadDir(dir)
			for _, e := range entries {
				files = append(files, file{e.Name()})
			}
			err2 := json.NewEncoder(w).Encode(map[string]any{"sha": "c0ffee", "siblings": files})
			if err := errors.Join(err, err2); err != nil {
				t.Error(err)
			}
			return
		}
		name, ok := strings.CutPrefix(r.URL.Path, "/bird/sings/resolve/c0ffee/")
		if !ok {
			http.NotFound(w, r)
			return
		}
		http.ServeFile(w, r, filepath.Join(dir, name))
	}))
	defer hub.Close()
	t.Setenv("HF_ENDPOINT", hub.URL)
	to := filepath.Join(t.TempDir(), "model")
	var got struct {
		Commit string `json:"commit"`
		Files  []struct {
			Name, SHA256 string
		} `json:"files"`
	}
	does(t, &got, "model", "pull", "hf:bird/sings", "--revision", "v1", "--to", to)
	if got.Commit != "c0ffee" || len(got.Files) != 4 {
		t.Errorf("%+v", got)
	}
	code, text, errs := starling(t, "model", "generate", to, "--prompt", "a", "--tokens", "2")
	if code != 0 || text == "" {
		t.Errorf("exit %d: %s%s", code, text, errs)
	}
	for _, c := range []struct {
		args []string
		exit int
		code string
	}{
		{[]string{"hf:bird/flies"}, 3, "HUB_NOT_FOUND"}, {[]string{"hf:bird"}, 2, "HUB_NAME"},
	} {
		args := append([]string{"model", "pull", "--to", to + "-not"}, c.args...)
		if code, _, errs := starling(t, args...); code != c.exit || !strings.Contains(errs, c.code) {
			t.Errorf("%v: exit %d: %s", c.args, code, errs)
		}
	}
}
