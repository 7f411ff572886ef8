package encoder

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/textclass"
)

// The tokenizer's configuration is that of the base model, and says how texts are filled up.
func TestTokenizerConfig(t *testing.T) {
	base := t.TempDir()
	if err := os.WriteFile(filepath.Join(base, TokenizerFile), []byte(`{"tokenizer_class": "Own", `+
		`"padding_side": "left", "chat_template": "x", "model_max_length": 999, "bos_token": "<s>", `+
		`"pad_token": "was"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.TrainBPE(slices.Values([]string{"some text and more text", "and some other text"}), 270)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := tok.EndOfText()
	var last textclass.Network
	for _, c := range []struct {
		vocab, pad int
		base, want string // the token that is padding
	}{{tok.VocabSize(), int(end), base, tokenizer.EndOfText}, {tok.VocabSize(), int(end), "", tokenizer.EndOfText},
		{tok.VocabSize(), tok.VocabSize(), base, ""}, {tok.VocabSize() + 1, tok.VocabSize(), "", "[PAD]"}} {
		config, err := architecture.Parse(architecture.GPT2, map[string]any{"vocab_size": c.vocab, "n_positions": 16,
			"n_embd": 4, "n_head": 1, "n_layer": 1})
		if err != nil {
			t.Fatal(err)
		}
		n, err := textclass.New(config, []string{"a", "b"}, 9, c.pad)
		if err != nil {
			t.Fatal(err)
		}
		last = n
		raw, err := TokenizerConfig(n, n.Example(), tok, c.base)
		var got struct {
			Class    string `json:"tokenizer_class"`
			Length   int    `json:"model_max_length"`
			Side     string `json:"padding_side"`
			Pad      string `json:"pad_token"`
			Begin    string `json:"bos_token"`
			Template string `json:"chat_template"`
		}
		if err := errors.Join(err, json.Unmarshal(raw, &got)); err != nil || got.Pad != c.want || got.Length != 9 ||
			got.Side != "right" || got.Template != "" || (got.Class == "Own" && got.Begin == "<s>") != (c.base != "") {
			t.Errorf("%+v: %s, %v", c, raw, err)
		}
	}
	if err := os.WriteFile(filepath.Join(base, TokenizerFile), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := TokenizerConfig(last, 9, tok, base); err == nil {
		t.Error("a broken file is taken")
	}
}
