package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/internal/pushtest"
)

// A folder of a model is copied to a bucket and to a hub; what cannot be copied is said with a code, and the command
// without a target makes it up.
func TestModelPush(t *testing.T) {
	store, hub := pushtest.NewStore(t, "models"), pushtest.NewHub(t)
	dir := llamaFolder(t)
	weights, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Folder string
		Pushes []struct{ To, State, Address string }
	}
	does(t, &got, "model", "push", dir, "s3://models/llama", "hf:starling/llama")
	if got.Folder != dir || len(got.Pushes) != 2 || got.Pushes[0].State != "done" ||
		got.Pushes[0].Address != store.URL+"/models/llama" || got.Pushes[1].Address != hub.URL+"/starling/llama" {
		t.Errorf("%+v", got)
	}
	if !bytes.Equal(store.Objects()["llama/model.safetensors"].Bytes, weights) ||
		!bytes.Equal(hub.Repo("starling/llama").Files["model.safetensors"], weights) {
		t.Error("the weights are others")
	}
	code, text, errs := starling(t, "model", "push", dir, "s3://models/llama")
	if code != 0 || !strings.HasPrefix(text, "s3://models/llama  done, ") {
		t.Errorf("exit %d: %s%s", code, text, errs)
	}
	for _, c := range []struct {
		args []string
		exit int
		code string
	}{
		{[]string{dir, "s3://nothing/x"}, 3, "PUSH_NOT_FOUND"}, {[]string{dir, "ftp://x"}, 2, "PUSH_TARGET"},
		{[]string{t.TempDir(), "s3://models/x"}, 3, "PUSH_NO_MODEL"}, {[]string{t.TempDir()}, 3, "PUSH_NOTHING"},
		{[]string{filepath.Join(dir, "none"), "s3://models/x"}, 3, "PUSH_NO_MODEL"},
	} {
		if code, _, errs := starling(t, append([]string{"model", "push"}, c.args...)...); code != c.exit ||
			!strings.Contains(errs, c.code) {
			t.Errorf("%v: exit %d: %s", c.args, code, errs)
		}
	}
	store.Bucket = "nothing" // it is made meanwhile
	if code, text, errs := starling(t, "model", "push", dir); code != 0 ||
		!strings.Contains(text, "s3://nothing/x  done") {
		t.Errorf("exit %d: %s%s", code, text, errs)
	}
	if got := store.Objects(); got["x/config.json"].Bytes == nil {
		t.Errorf("%d objects", len(got))
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
	if code, _, errs := starling(t, "model", "push", dir, "s3://models/y", "--wait", "1ms"); code != 8 ||
		!strings.Contains(errs, "PUSH_UNREACHABLE") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// A process that is killed between two parts of a file leaves what the next one continues.
func TestModelPushIsKilled(t *testing.T) {
	store := pushtest.NewStore(t, "models")
	dir := t.TempDir()
	weights := bytes.Repeat([]byte("0123456789abcdef"), 40<<16) // three parts
	if err := os.WriteFile(filepath.Join(dir, "model.safetensors"), weights, 0o644); err != nil {
		t.Fatal(err)
	}
	c := command(t, "model", "push", dir, "s3://models/x")
	store.Fault = func(r *http.Request, _ int) int {
		if r.URL.Query().Get("partNumber") == "2" {
			_ = c.Process.Kill() // it has begun
			return -1
		}
		return 0
	}
	if err := c.Run(); err == nil || store.Pending() != 1 {
		t.Fatalf("%v, %d uploads are open", err, store.Pending())
	}
	store.Fault = nil
	before := len(store.Requests())
	var got struct{ Pushes []struct{ State string } }
	does(t, &got, "model", "push", dir)
	var sent []string
	for _, q := range store.Requests()[before:] {
		if strings.HasPrefix(q, "PUT ") || strings.HasSuffix(q, "?uploads=") {
			_, part, _ := strings.Cut(q, "partNumber=")
			sent = append(sent, part[:min(1, len(part))])
		}
	}
	if len(got.Pushes) != 1 || got.Pushes[0].State != "done" || strings.Join(sent, " ") != "2 3" {
		t.Errorf("%+v: parts %q are sent", got, sent)
	}
	if !bytes.Equal(store.Objects()["x/model.safetensors"].Bytes, weights) {
		t.Error("the weights are others")
	}
}
