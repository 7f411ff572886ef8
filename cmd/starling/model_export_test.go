package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/folder"
)

// llamaFolder is a small Llama in Hugging Face form, with a chat template.
func llamaFolder(t *testing.T) string {
	t.Helper()
	c, err := architecture.Parse(architecture.Llama, map[string]any{"num_hidden_layers": 1, "hidden_size": 64,
		"num_attention_heads": 2,
		"num_key_value_heads": 2, "intermediate_size": 64, "max_position_embeddings": 32, "vocab_size": 300})
	if err != nil {
		t.Fatal(err)
	}
	return modelFolder(t, c)
}

// modelFolder is the folder of a model of bytes with drawn weights.
func modelFolder(t *testing.T, c architecture.Config) string {
	t.Helper()
	dir := t.TempDir()
	files, err := (&folder.Model{Config: c, Tensors: c.Init(1)}).Files(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		var out bytes.Buffer
		if err := f.Write(&out); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, f.Name), out.Bytes())
	}
	writeFile(t, filepath.Join(dir, "tokenizer.json"), tokenizer.Bytes().JSON())
	writeFile(t, filepath.Join(dir, "tokenizer_config.json"), []byte(`{"chat_template": "{{ messages }}-marked"}`))
	return dir
}

func writeFile(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Any folder of a Llama becomes a file for llama.cpp, of every type, with its template; what cannot is said, and leaves
// no file.
func TestModelExport(t *testing.T) {
	dir := llamaFolder(t)
	last := int64(1 << 40)
	for _, kind := range []string{"f32", "f16", "q8_0", "q4_0"} {
		var got exportedModel
		file := filepath.Join(t.TempDir(), kind+".gguf")
		does(t, &got, "model", "export", dir, "--format", "gguf", "--type", kind, "--file", file)
		raw, err := os.ReadFile(file)
		if err != nil || int64(len(raw)) != got.Bytes || got.Bytes >= last || !bytes.HasPrefix(raw, []byte("GGUF")) {
			t.Errorf("%s: %+v, %d bytes after %d (%v)", kind, got, len(raw), last, err)
		}
		last = got.Bytes
		if !bytes.Contains(raw, []byte("tokenizer.chat_template")) || !bytes.Contains(raw, []byte("}}-marked")) {
			t.Errorf("%s: no template", kind)
		}
	}
	file := filepath.Join(t.TempDir(), "none.gguf")
	if code, _, _ := starling(t, "model", "export", dir, "--type", "q5_k", "--file", file); code != 2 {
		t.Errorf("another type: exit %d", code)
	}
	if code, _, _ := starling(t, "model", "export", t.TempDir(), "--file", file); code != 3 {
		t.Errorf("no model: exit %d", code)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a file was left")
	}
}
