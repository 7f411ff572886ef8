package folder

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/fields"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/tensor"
)

var configs = map[string]map[string]any{
	architecture.GPT2: {"n_layer": 2, "n_embd": 8, "n_head": 2, "n_positions": 16, "vocab_size": 20},
	architecture.Llama: {"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 4, "num_key_value_heads": 2,
		"intermediate_size":       12,
		"max_position_embeddings": 16, "vocab_size": 20, "tie_word_embeddings": false},
}

func sample(t testing.TB, modelType string) *Model {
	t.Helper()
	c, err := architecture.Parse(modelType, configs[modelType])
	if err != nil {
		t.Fatal(err)
	}
	return &Model{Config: c, Tensors: c.Init(7)}
}

func write(t testing.TB, m *Model, shardBytes int64) fstest.MapFS {
	t.Helper()
	files, err := m.Files(shardBytes)
	if err != nil {
		t.Fatal(err)
	}
	out := fstest.MapFS{}
	for _, f := range files {
		var b bytes.Buffer
		if err := f.Write(&b); err != nil {
			t.Fatal(err)
		}
		out[f.Name] = &fstest.MapFile{Data: b.Bytes()}
	}
	return out
}

func equal(t *testing.T, got, want *Model) {
	t.Helper()
	if !bytes.Equal(got.Config.JSON(), want.Config.JSON()) {
		t.Errorf("config %s, want %s", got.Config.JSON(), want.Config.JSON())
	}
	if len(got.Tensors) != len(want.Tensors) {
		t.Errorf("%d tensors, want %d", len(got.Tensors), len(want.Tensors))
	}
	for name, w := range want.Tensors {
		if g := got.Tensors[name]; g == nil || !g.Shape.Equal(w.Shape) || !bytes.Equal(g.Bytes(), w.Bytes()) {
			t.Errorf("%s differs", name)
		}
	}
}

func TestRoundTripKeepsBits(t *testing.T) {
	for modelType := range configs {
		m := sample(t, modelType)
		for _, shardBytes := range []int64{math.MaxInt64, 2000, 1} {
			files := write(t, m, shardBytes)
			got, err := Read(files)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, got, m)
			if again := write(t, got, shardBytes); !sameFiles(again, files) {
				t.Errorf("%s, %d: the files differ", modelType, shardBytes)
			}
			if _, sharded := files[indexFile]; sharded != (shardBytes < math.MaxInt64) {
				t.Errorf("%s: %d files for %d bytes a shard", modelType, len(files), shardBytes)
			}
		}
	}
}

func sameFiles(a, b fstest.MapFS) bool {
	return maps.EqualFunc(a, b, func(x, y *fstest.MapFile) bool { return bytes.Equal(x.Data, y.Data) })
}

func TestShardsKeepToTheirSize(t *testing.T) {
	m := sample(t, architecture.Llama)
	files := write(t, m, 2000)
	var index struct {
		Metadata struct {
			TotalSize int `json:"total_size"`
		}
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(files[indexFile].Data, &index); err != nil {
		t.Fatal(err)
	}
	if index.Metadata.TotalSize != 4*m.Config.Parameters() || len(index.WeightMap) != len(m.Tensors) {
		t.Errorf("the index says %d bytes and %d tensors", index.Metadata.TotalSize, len(index.WeightMap))
	}
	for name, f := range files {
		if !strings.HasPrefix(name, "model-") {
			continue
		}
		shard, err := safetensors.Open(f.Data)
		if err != nil {
			t.Fatal(name, err)
		}
		size := 0
		for _, tensorName := range shard.Names() {
			x, err := shard.Tensor(tensorName)
			if err != nil {
				t.Fatal(name, err)
			}
			size += x.Shape.Bytes()
			if index.WeightMap[tensorName] != name {
				t.Errorf("%s is in %s, the index says %s", tensorName, name, index.WeightMap[tensorName])
			}
		}
		if size > 2000 || shard.Meta["format"] != "pt" {
			t.Errorf("%s: %d bytes, %v", name, size, shard.Meta)
		}
	}
}

// A folder in half precision is written as it was read.
func TestRoundTripKeepsHalfPrecision(t *testing.T) {
	m := sample(t, architecture.Llama)
	m.DTypes = map[string]string{}
	for i, named := range m.Config.Tensors() {
		x := m.Tensors[named.Name].F32()
		if i%3 == 0 {
			continue
		}
		m.DTypes[named.Name] = "BF16"
		for j := range x {
			x[j] = math.Float32frombits(math.Float32bits(x[j]) &^ 0xffff)
		}
	}
	files := write(t, m, 1000)
	got, err := Read(files)
	if err != nil {
		t.Fatal(err)
	}
	if !sameFiles(write(t, got, 1000), files) {
		t.Error("the files differ")
	}
	m.Tensors["model.norm.weight"].F32()[0] = 1.001
	list, err := m.Files(math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	m.DTypes["model.norm.weight"] = "BF16"
	if err := list[1].Write(io.Discard); !errors.Is(err, safetensors.ErrInexact) {
		t.Errorf("a value was rounded: %v", err)
	}
}

// change returns the files with the tensors of the one file of weights changed.
func change(t *testing.T, m *Model, f func(tensors map[string]*tensor.Tensor)) fstest.MapFS {
	t.Helper()
	files := write(t, m, math.MaxInt64)
	tensors := maps.Clone(m.Tensors)
	f(tensors)
	var b bytes.Buffer
	if err := safetensors.EncodeAs(&b, slices.Sorted(maps.Keys(tensors)), tensors, nil, nil); err != nil {
		t.Fatal(err)
	}
	files[weightsFile] = &fstest.MapFile{Data: b.Bytes()}
	return files
}

func TestReadsOldAndTiedFiles(t *testing.T) {
	m := sample(t, architecture.GPT2)
	got, err := Read(change(t, m, func(all map[string]*tensor.Tensor) {
		for name, x := range m.Tensors {
			delete(all, name)
			all[strings.TrimPrefix(name, "transformer.")] = x
		}
		all["h.0.attn.bias"] = tensor.FromF32(make([]float32, 4), 1, 1, 2, 2)
		all["lm_head.weight"] = m.Tensors["transformer.wte.weight"].Clone()
	}))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, got, m)
}

// shardOf returns the name of the first file of a cut model.
func shardOf(t testing.TB, files fstest.MapFS) string {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(name, "model-00001-of-") {
			return name
		}
	}
	t.Fatal("the model is not cut")
	return ""
}

func TestReadRefuses(t *testing.T) {
	gpt2, llama := sample(t, architecture.GPT2), sample(t, architecture.Llama)
	const norm = "model.norm.weight"
	edit := func(f func(files fstest.MapFS)) fstest.MapFS {
		files := write(t, llama, 1000)
		f(files)
		return files
	}
	replace := func(file, from, to string) fstest.MapFS {
		return edit(func(files fstest.MapFS) {
			text := strings.Replace(string(files[file].Data), from, to, 1)
			if text == string(files[file].Data) {
				t.Fatalf("%q is not in %s", from, file)
			}
			files[file] = &fstest.MapFile{Data: []byte(text)}
		})
	}
	first := shardOf(t, write(t, llama, 1000))
	for name, c := range map[string]struct {
		files        fs.FS
		file, tensor string
		want         error
	}{
		"empty folder":        {fstest.MapFS{}, configFile, "", fs.ErrNotExist},
		"config is no JSON":   {replace(configFile, "{", "["), configFile, "", ErrJSON},
		"config has no type":  {replace(configFile, "model_type", "model_tipe"), configFile, "", ErrJSON},
		"another config":      {replace(configFile, `"hidden_size": 8`, `"hidden_size": -1`), configFile, "", nil},
		"index is no JSON":    {replace(indexFile, "{", "["), indexFile, "", ErrJSON},
		"index without a map": {replace(indexFile, "weight_map", "weight_mop"), indexFile, "", ErrJSON},
		"a file elsewhere":    {replace(indexFile, `"model-`, `"../model-`), indexFile, "", ErrIndex},
		"a file is missing":   {edit(func(f fstest.MapFS) { delete(f, first) }), first, "", fs.ErrNotExist},
		"a file is cut off": {edit(func(f fstest.MapFS) { f[first].Data = f[first].Data[:100] }), first, "",
			safetensors.ErrMalformed},
		"index lacks a tensor": {replace(indexFile, `"model.embed_tokens.weight"`, `"model.embed"`), first,
			"model.embed_tokens.weight", ErrIndex},
		"index has one more": {replace(indexFile, `"weight_map": {`, `"weight_map": {"more": "`+first+`",`), first, "more",
			ErrIndex},
		"tensor is missing": {change(t, llama, func(m map[string]*tensor.Tensor) { delete(m, norm) }), weightsFile, norm,
			ErrMissing},
		"unknown tensor": {change(t, llama, func(m map[string]*tensor.Tensor) { m["x"] = m[norm] }), weightsFile, "x",
			ErrUnknown},
		"another shape": {change(t, llama, func(m map[string]*tensor.Tensor) { m[norm] = tensor.Scalar(1) }),
			weightsFile, norm, ErrShape},
		"not a number": {change(t, llama, func(m map[string]*tensor.Tensor) {
			m[norm] = m[norm].Clone()
			m[norm].F32()[3] = float32(math.NaN())
		}), weightsFile, norm, ErrNotFinite},
		"infinite": {change(t, llama, func(m map[string]*tensor.Tensor) {
			m[norm] = m[norm].Clone()
			m[norm].F32()[3] = float32(math.Inf(-1))
		}), weightsFile, norm, ErrNotFinite},
		"head not tied": {change(t, gpt2, func(m map[string]*tensor.Tensor) {
			m["lm_head.weight"] = tensor.New(m["transformer.wte.weight"].Shape)
		}), weightsFile, "lm_head.weight", ErrNotTied},
		"one tensor under two names": {change(t, gpt2,
			func(m map[string]*tensor.Tensor) { m["wte.weight"] = m["transformer.wte.weight"] }),
			weightsFile, "wte.weight", ErrIndex},
	} {
		_, err := Read(c.files)
		var at *Error
		if !errors.As(err, &at) || at.File != c.file || at.Tensor != c.tensor || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v in %s at %q", name, err, c.want, c.file, c.tensor)
		}
	}
}

// Keys that published files have and that say nothing about the model do not keep it from being read; those that change
// what it computes do, and the error does not advise to remove them.
func TestReadsPublishedConfigs(t *testing.T) {
	with := func(key, value string) fstest.MapFS {
		files := write(t, sample(t, architecture.Llama), math.MaxInt64)
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(files[configFile].Data, &keys); err != nil {
			t.Fatal(err)
		}
		keys[key] = json.RawMessage(value)
		text, err := json.Marshal(keys)
		if err != nil {
			t.Fatal(err)
		}
		files[configFile] = &fstest.MapFile{Data: text}
		return files
	}
	for key, value := range map[string]string{"is_llama_config": "true", "rope_interleaved": "false", "n_special": "0",
		"predict_special_tokens": "true", "output_past": "true", "_num_labels": "1", "id2label": `{"0": "LABEL_0"}`,
		"gradient_checkpointing": "false", "unsloth_fixed": "true", "quantization_config": "null", "sliding_window": "null",
		"auto_map": `{"AutoConfig": "x.Y"}`, "transformers.js_config": "{}", "pruned_heads": "{}"} {
		if m, err := Read(with(key, value)); err != nil || len(m.Ignored) > 0 {
			t.Errorf("%s: %v; ignored %v", key, err, m.Ignored)
		}
	}
	if m, err := Read(with("a_new_key", "true")); err != nil || !slices.Equal(m.Ignored, []string{"a_new_key"}) {
		t.Errorf("%v, %+v", err, m)
	}
	for key, value := range map[string]string{"quantization_config": `{"bits": 4}`, "rope_interleaved": "true",
		"rope_scaling": `{"rope_type": "longrope", "short_factor": [1]}`, "hidden_act": `"mish"`,
		"final_logit_softcapping": "30.0",
		"pruned_heads":            `{"1": [0]}`} {
		_, err := Read(with(key, value))
		var bad *fields.Error
		if !errors.As(err, &bad) || !strings.HasPrefix(bad.Key, key) ||
			!strings.Contains(err.Error(), "use another base model") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestReadSaysHowToConvertPickledWeights(t *testing.T) {
	for _, name := range []string{pickleFile, pickleIndex} {
		files := write(t, sample(t, architecture.Llama), math.MaxInt64)
		delete(files, weightsFile)
		files[name] = &fstest.MapFile{}
		if _, err := Read(files); !errors.Is(err, ErrPickle) || !strings.Contains(err.Error(), "safe_serialization") {
			t.Error(err)
		}
	}
}

// resting notes the bytes that rest.
type resting struct {
	fstest.MapFS
	bytes map[*byte]int
}

func (r resting) Rest(part []byte) { r.bytes[&part[0]] += len(part) }

// TestCheckedTensorsRest: of mapped files each tensor rests once, as it lies in its file.
func TestCheckedTensorsRest(t *testing.T) {
	m := sample(t, architecture.Llama)
	r := resting{write(t, m, 1<<20), map[*byte]int{}}
	got, err := Read(r)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, got, m)
	for name, x := range got.Tensors {
		if r.bytes[&x.Bytes()[0]] != len(x.Bytes()) {
			t.Errorf("%s: %d of %d bytes rest", name, r.bytes[&x.Bytes()[0]], len(x.Bytes()))
		}
	}
}

func TestFilesRefuses(t *testing.T) {
	m := sample(t, architecture.GPT2)
	m.Tensors["transformer.wpe.weight"] = tensor.Scalar(0)
	if _, err := m.Files(1000); !errors.Is(err, ErrShape) {
		t.Errorf("another shape: %v", err)
	}
	delete(m.Tensors, "transformer.wpe.weight")
	if _, err := m.Files(1000); !errors.Is(err, ErrMissing) {
		t.Errorf("a tensor is missing: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	whole := write(f, sample(f, architecture.GPT2), 3000)
	first := shardOf(f, whole)
	f.Add(whole[configFile].Data, whole[indexFile].Data, whole[first].Data)
	whole = write(f, sample(f, architecture.Llama), math.MaxInt64)
	f.Add(whole[configFile].Data, []byte{}, whole[weightsFile].Data)
	f.Fuzz(func(t *testing.T, config, index, weights []byte) {
		files := fstest.MapFS{configFile: {Data: config}, weightsFile: {Data: weights}, first: {Data: weights}}
		if len(index) > 0 {
			files[indexFile] = &fstest.MapFile{Data: index}
		}
		m, err := Read(files)
		if err != nil {
			if at := (*Error)(nil); !errors.As(err, &at) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if _, err := m.Files(1000); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
	})
}
