package main

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/model/vision"
)

// TestModelAtThreeParties divides a model among three processes, which name the classes that the model names.
func TestModelAtThreeParties(t *testing.T) {
	dir := t.TempDir()
	model, images := drawnPerceptron(t, dir), drawnImages(t, dir)
	var divided struct {
		Folders     []string
		Bound, Risk float64
	}
	does(t, &divided, "model", "divide", model, "--out", filepath.Join(dir, "parties"))
	id := func(home string) string {
		var is struct {
			PeerID string `json:"peer_id"`
		}
		does(t, &is, "worker", "identity", "--home", home)
		return is.PeerID
	}
	me := filepath.Join(dir, "me")
	var listen, parties []string
	for i := range divided.Folders {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		at := fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", l.Addr().(*net.TCPAddr).Port)
		_ = l.Close()
		listen = append(listen, at)
		parties = append(parties, "--party", at+"/p2p/"+id(filepath.Join(dir, fmt.Sprint("home", i))))
	}
	for i, folder := range divided.Folders {
		var holding struct{ Party int }
		told(t, &holding, append([]string{"model", "party", folder, "--home", filepath.Join(dir, fmt.Sprint("home", i)),
			"--listen", listen[i], "--client", id(me)}, parties...)...)
		if holding.Party != i+1 {
			t.Errorf("party %d says %d", i+1, holding.Party)
		}
	}
	type named struct{ Image, Label string }
	var whole, asked struct {
		Images []named
	}
	does(t, &whole, append([]string{"model", "classify", model}, images...)...)
	does(t, &asked, slices.Concat([]string{"model", "query"}, images, []string{"--home", me}, parties)...)
	if len(asked.Images) != len(images) || !slices.Equal(asked.Images, whole.Images) {
		t.Errorf("parties say %v, the model %v", asked.Images, whole.Images)
	}
	for _, c := range []struct {
		exit int
		args []string
	}{
		{8, slices.Concat([]string{"model", "query", images[0], "--home", filepath.Join(dir, "stranger")}, parties)},
		{2, []string{"model", "query", images[0], "--home", me}},
		{2, slices.Concat([]string{"model", "query", images[0], "--home", me}, parties[:4], parties[:2])},
		{2, slices.Concat([]string{"model", "party", divided.Folders[0], "--home", me, "--client", id(me)}, parties)},
		{2, slices.Concat([]string{"model", "query", images[0]}, parties)},
		{3, slices.Concat([]string{"model", "query", model + "/config.json", "--home", me}, parties)},
		{3, []string{"model", "divide", dir, "--out", filepath.Join(dir, "none")}},
		{5, []string{"model", "divide", model, "--out", filepath.Join(dir, "parties")}},
		{2, []string{"model", "divide", model}},
	} {
		if code, _, stderr := starling(t, c.args...); code != c.exit {
			t.Errorf("%v: %d, wanted %d: %s", c.args, code, c.exit, stderr)
		}
	}
}

// drawnPerceptron is a folder with a multilayer perceptron.
func drawnPerceptron(t *testing.T, dir string) string {
	t.Helper()
	n, err := vision.Parse(vision.MLP, map[string]any{"hidden_sizes": []any{16}},
		picture.Size{Rows: 6, Columns: 6, Channels: 1}, []string{"a", "b", "c"})
	if err != nil {
		t.Fatal(err)
	}
	weights := architecture.Init(n.Tensors(), 11)
	var file bytes.Buffer
	if err := safetensors.EncodeAs(&file, slices.Sorted(maps.Keys(weights)), weights, nil, nil); err != nil {
		t.Fatal(err)
	}
	model := filepath.Join(dir, "model")
	write(t, filepath.Join(model, "config.json"), n.JSON())
	write(t, filepath.Join(model, "model.safetensors"), file.Bytes())
	return model
}

func drawnImages(t *testing.T, dir string) (paths []string) {
	t.Helper()
	for i := range 4 {
		m := image.NewGray(image.Rect(0, 0, 6, 6))
		for k := range 36 {
			m.SetGray(k%6, k/6, color.Gray{Y: uint8(i*91 + k*k*(2*i+3))})
		}
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, fmt.Sprintf("%d.png", i))
		write(t, path, b.Bytes())
		paths = append(paths, path)
	}
	return paths
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}
