package trainer

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/prepare/hubfile"
	"github.com/starling-network/starling/node/textgen"
	"github.com/starling-network/starling/web/tinker"
)

// baseModel writes a tiny model of bytes with random weights, which reads 64 tokens.
func baseModel(t testing.TB, tied bool) (dir string) { return baseOf(t, tied, 64) }

func baseOf(t testing.TB, tied bool, context int) (dir string) {
	t.Helper()
	c, err := architecture.Parse(architecture.Llama,
		map[string]any{"vocab_size": 256, "max_position_embeddings": context, "hidden_size": 32,
			"intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "tie_word_embeddings": tied})
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "base")
	weights := c.Init(3)
	for _, f := range []hubfile.File{hubfile.Text("config.json", c.JSON()),
		hubfile.Text("tokenizer.json", tokenizer.Bytes().JSON()),
		hubfile.Weights("model.safetensors", c.Tensors(),
			func(name string) (*tensor.Tensor, error) { return weights[name], nil })} {
		var b bytes.Buffer
		if err := f.Write(&b); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// client is a client of the interface over HTTP.
type client struct {
	t    testing.TB
	base string
}

// serve serves a base model, with saved weights in a folder.
func serve(t testing.TB, dir, out string, threads int) client {
	t.Helper()
	return serveWith(t, dir, Options{Out: out, Threads: threads})
}

func serveWith(t testing.TB, dir string, o Options) client {
	t.Helper()
	e, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := httptest.NewServer(tinker.New(ctx, e, tinker.Config{Models: 2}))
	t.Cleanup(func() { s.Close(); cancel() })
	return client{t, s.URL + tinker.Prefix}
}

type object = map[string]any

// post sends a request and returns the status and the answer.
func (c client) post(path string, body object) (int, object) {
	c.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	r, err := http.Post(c.base+path, "application/json", bytes.NewReader(raw))
	if err != nil {
		c.t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	answer := object{}
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err != nil {
		c.t.Fatalf("%s: %v: %s", path, err, text)
	}
	return r.StatusCode, answer
}

// do sends a request and returns what it gave, also if that was promised only.
func (c client) do(path string, body object) object {
	c.t.Helper()
	status, answer := c.post(path, body)
	if status == http.StatusOK && answer["status"] == "pending" {
		status, answer = c.post("retrieve_future", object{"request_id": answer["request_id"]})
	}
	if status != http.StatusOK || answer["error"] != nil {
		c.t.Fatalf("%s: %d %v", path, status, answer)
	}
	return answer
}

// create begins a session and a model.
func (c client) create(lora object) (session, model string) {
	c.t.Helper()
	session = c.do("create_session", object{"tags": []string{}, "sdk_version": "0.1.0"})["session_id"].(string)
	body := object{"session_id": session, "model_seq_id": 0, "base_model": "base"}
	if lora != nil {
		body["lora_config"] = lora
	}
	return session, c.do("create_model", body)["model_id"].(string)
}

func numbers(x any) (out []float32) {
	for _, e := range x.([]any) {
		out = append(out, float32(e.(float64)))
	}
	return out
}

func ids(x any) (out []int32) {
	for _, e := range x.([]any) {
		out = append(out, int32(e.(float64)))
	}
	return out
}

func bytesOf(text string) (out []int32) {
	for _, b := range []byte(text) {
		out = append(out, int32(b))
	}
	return out
}

func input(tokens []int32) object {
	return object{"chunks": []object{{"type": "encoded_text", "tokens": tokens}}}
}

// datumOf predicts each token of a text but the first.
func datumOf(tokens []int32, more object) object {
	inputs := object{"target_tokens": object{"data": tokens[1:], "dtype": "int64", "shape": []int{len(tokens) - 1}}}
	for name, list := range more {
		inputs[name] = object{"data": list, "dtype": "float32"}
	}
	return object{"model_input": input(tokens[:len(tokens)-1]), "loss_fn_inputs": inputs}
}

func (c client) backward(model, loss string, data []object) (float64, [][]float32) {
	c.t.Helper()
	got := c.do("forward_backward", object{"model_id": model,
		"forward_backward_input": object{"data": data, "loss_fn": loss}})
	return got["metrics"].(object)["loss:sum"].(float64), logProbsOf(got)
}

func logProbsOf(pass object) (all [][]float32) {
	for _, o := range pass["loss_fn_outputs"].([]any) {
		all = append(all, numbers(o.(object)["logprobs"].(object)["data"]))
	}
	return all
}

func (c client) forward(model, loss string, data []object) [][]float32 {
	c.t.Helper()
	return logProbsOf(c.do("forward", object{"model_id": model,
		"forward_input": object{"data": data, "loss_fn": loss}}))
}

func (c client) step(model string, rate float64) {
	c.t.Helper()
	c.do("optim_step", object{"model_id": model, "adam_params": object{"learning_rate": rate, "beta1": 0.9,
		"beta2": 0.95, "eps": 1e-8, "weight_decay": 0.01, "grad_clip_norm": 1}})
}

const lesson = "the starling sings at dawn"

// supervised trains a model on one text, and returns its losses.
func (c client) supervised(model string, steps int) (losses []float64) {
	c.t.Helper()
	data := []object{datumOf(bytesOf(lesson), nil), datumOf(bytesOf("at dusk"), object{
		"weights": slices.Repeat([]float32{0.5}, 6)})}
	for range steps {
		loss, _ := c.backward(model, "cross_entropy", data)
		losses = append(losses, loss)
		c.step(model, 1e-2)
	}
	return losses
}

// TestSupervised trains an adapter and all weights over HTTP, saves them, and generates text with the folders.
func TestSupervised(t *testing.T) {
	for name, lora := range map[string]object{"adapter": {"rank": 8, "seed": 7, "train_unembed": true}, "whole": nil} {
		dir, out := baseModel(t, name == "whole"), t.TempDir()
		c := serve(t, dir, out, 2)
		_, model := c.create(lora)
		losses := c.supervised(model, 150)
		if first, last := losses[0], losses[len(losses)-1]; !(last < first/10) {
			t.Errorf("%s: the loss went from %v to %v", name, first, last)
		}
		path := c.do("save_weights", object{"model_id": model, "path": "one"})["path"]
		if path != "tinker://"+model+"/weights/one" {
			t.Errorf("%s: saved at %v", name, path)
		}
		g, err := textgen.OpenModel(filepath.Join(out, model, "weights", "one"))
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if _, err := g.Generate(t.Context(), textgen.Options{Prompt: lesson[:4], Tokens: len(lesson) - 4,
			Sampling: generate.Sampling{}}, func(s string) error { text.WriteString(s); return nil }); err != nil {
			t.Fatal(err)
		}
		if text.String() != lesson[4:] {
			t.Errorf("%s: the saved model writes %q, after losses %v", name, text.String(), losses)
		}
		checkResumed(t, c, dir, out, model, lora)
	}
}

// checkResumed loads weights in another process and trains on: it must give what training on gives here.
func checkResumed(t *testing.T, c client, dir, out, model string, lora object) {
	t.Helper()
	d := serve(t, dir, out, 1)
	_, resumed := d.create(lora)
	d.do("load_weights", object{"model_id": resumed, "path": "tinker://" + model + "/weights/one", "optimizer": true})
	want, got := c.supervised(model, 3), d.supervised(resumed, 3)
	if !slices.Equal(want, got) {
		t.Errorf("after loading, the losses are %v, without %v", got, want)
	}
	info := d.do("weights_info", object{"tinker_path": "tinker://" + model + "/weights/one"})
	if info["base_model"] != "base" || info["is_lora"] != (lora != nil) {
		t.Errorf("weights_info says %v", info)
	}
}

// samples continues a prompt.
func (c client) samples(body object) (tokens [][]int32, logs [][]float32, answer object) {
	c.t.Helper()
	answer = c.do("asample", body)
	for _, s := range answer["sequences"].([]any) {
		tokens = append(tokens, ids(s.(object)["tokens"]))
		logs = append(logs, numbers(s.(object)["logprobs"]))
	}
	return tokens, logs, answer
}

// sampler saves weights to draw samples from, and returns its sampling session.
func (c client) sampler(model string, number int) string {
	c.t.Helper()
	return c.do("save_weights_for_sampler", object{"model_id": model, "sampling_session_seq_id": number,
		"seq_id": 1000 + number})["sampling_session_id"].(string)
}

// TestReinforcement rewards answers with many letters e: importance sampling and PPO raise their number, and the
// divergence of sampler and trainer is 0 in every step.
func TestReinforcement(t *testing.T) {
	for _, loss := range []string{"importance_sampling", "ppo"} {
		c := serve(t, baseModel(t, false), t.TempDir(), 2)
		_, model := c.create(object{"rank": 8, "seed": 1})
		prompt, rewards := bytesOf("be"), []float64{}
		for step := range 12 {
			tokens, logs, _ := c.samples(object{"sampling_session_id": c.sampler(model, step), "seq_id": step,
				"prompt": input(prompt), "num_samples": 24, "sampling_params": object{"max_tokens": 6, "seed": 100 + step,
					"temperature": 1.0}})
			data, mean := c.rewarded(prompt, tokens, logs)
			rewards = append(rewards, mean)
			for i, got := range c.forward(model, loss, data) {
				if !slices.Equal(got[len(prompt)-1:], logs[i]) {
					t.Fatalf("%s, step %d, answer %d: the sampler says %v, the trainer %v", loss, step, i, logs[i], got)
				}
			}
			_, got := c.backward(model, loss, data)
			for i := range got {
				if !slices.Equal(got[i][len(prompt)-1:], logs[i]) {
					t.Fatalf("%s, step %d, answer %d: other bits with gradients", loss, step, i)
				}
			}
			c.step(model, 3e-2)
		}
		if first, last := rewards[0], rewards[len(rewards)-1]; !(last > first+0.3) {
			t.Errorf("%s: the rewards are %v", loss, rewards)
		}
	}
}

// rewarded are answers with their advantages, and their mean reward: the share of bytes below 64.
func (c client) rewarded(prompt []int32, answers [][]int32, logs [][]float32) (data []object, mean float64) {
	rewards := make([]float64, len(answers))
	for i, a := range answers {
		for _, id := range a {
			if id < 64 {
				rewards[i] += 1 / float64(len(a))
			}
		}
		mean += rewards[i] / float64(len(answers))
	}
	for i, a := range answers {
		before := make([]float32, len(prompt)-1)
		advantage := slices.Concat(before, slices.Repeat([]float32{float32(rewards[i] - mean)}, len(a)))
		data = append(data, datumOf(slices.Concat(prompt, a), object{"logprobs": slices.Concat(before, logs[i]),
			"advantages": advantage}))
	}
	return data, mean
}

// TestSameBits: log-probabilities do not depend on the other sequences of a request, nor on the tokens that follow,
// which decide how long the program is.
func TestSameBits(t *testing.T) {
	c := serve(t, baseOf(t, false, 300), t.TempDir(), 2)
	_, model := c.create(nil)
	long := make([]int32, 300)
	for i := range long {
		long[i] = int32(i * i * 7 % 256)
	}
	want := c.forward(model, "cross_entropy", []object{datumOf(long, nil)})[0]
	var together []object
	for _, n := range []int{2, 16, 17, 18, 33, 64, 65, 66, 100, 129, 130, 200, 257, 258, 299} {
		together = append(together, datumOf(long[:n], nil))
	}
	for i, got := range c.forward(model, "cross_entropy", together) {
		alone := c.forward(model, "cross_entropy", together[i:i+1])[0]
		if !slices.Equal(got, alone) || !slices.Equal(got, want[:len(got)]) {
			t.Errorf("%d tokens have other bits alone, with others, or with tokens after them", len(got))
		}
	}
}

// TestSameRequests: two servers with other numbers of threads give the same bytes.
func TestSameRequests(t *testing.T) {
	dir := baseModel(t, false)
	var weights, answers [][]byte
	for _, threads := range []int{1, 2} {
		out := t.TempDir()
		c := serve(t, dir, out, threads)
		_, model := c.create(object{"rank": 4, "seed": 3})
		c.supervised(model, 3)
		c.do("save_weights_for_sampler", object{"model_id": model, "path": "end"})
		raw, err := os.ReadFile(filepath.Join(out, model, "sampler_weights", "end", "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		_, _, answer := c.samples(object{"model_path": "tinker://" + model + "/sampler_weights/end",
			"prompt": input(bytesOf("the ")), "num_samples": 3, "prompt_logprobs": true,
			"sampling_params": object{"max_tokens": 9, "seed": 5, "top_p": 0.9, "temperature": 0.7}})
		text, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		weights, answers = append(weights, raw), append(answers, text)
	}
	if !bytes.Equal(weights[0], weights[1]) || !bytes.Equal(answers[0], answers[1]) {
		t.Errorf("the same requests gave %s and %s", answers[0], answers[1])
	}
}

// TestSampling checks stop sequences, limits and the log-probabilities of prompts.
func TestSampling(t *testing.T) {
	c := serve(t, baseModel(t, false), t.TempDir(), 2)
	_, model := c.create(object{"rank": 8, "seed": 7})
	c.supervised(model, 150)
	sampler := c.sampler(model, 0)
	ask := func(params object) object {
		params["temperature"] = 0
		_, _, answer := c.samples(object{"sampling_session_id": sampler, "seq_id": 1, "prompt": input(bytesOf("the ")),
			"prompt_logprobs": true, "sampling_params": params})
		return answer
	}
	for stop, want := range map[any]string{"sings": "starling sings", "": "starling sings a"} {
		params := object{"max_tokens": 16}
		if stop != "" {
			params["stop"] = stop
		}
		got := ask(params)["sequences"].([]any)[0].(object)
		if text := string(textOf(ids(got["tokens"]))); text != want || (got["stop_reason"] == "stop") != (stop != "") {
			t.Errorf("stop %q: %q, %v", stop, text, got["stop_reason"])
		}
	}
	answer := ask(object{"max_tokens": 2, "stop": []int32{'t'}})
	got := answer["sequences"].([]any)[0].(object)
	if text := string(textOf(ids(got["tokens"]))); text != "st" || got["stop_reason"] != "stop" {
		t.Errorf("stop at a token: %q, %v", text, got["stop_reason"])
	}
	prompt := answer["prompt_logprobs"].([]any)
	want := c.forward(model, "cross_entropy", []object{datumOf(bytesOf("the "), nil)})[0]
	if prompt[0] != nil || !slices.Equal(numbers(any(prompt[1:])), want) {
		t.Errorf("the prompt has %v, forward says %v", prompt, want)
	}
	short, err := Open(baseModel(t, false), Options{Context: 9})
	if err != nil || short.Base().Context != 9 {
		t.Errorf("the context of the server is %d, %v", short.Base().Context, err)
	}
	whole := c.do("sample", object{"base_model": "base", "prompt": input(bytesOf("a")),
		"sampling_params": object{"max_tokens": 3, "seed": 1}})
	if n := len(whole["sequences"].([]any)); n != 1 {
		t.Errorf("sample gives %d sequences", n)
	}
}

func textOf(tokens []int32) (out []byte) {
	for _, id := range tokens {
		out = append(out, byte(id))
	}
	return out
}

// TestNumbers: what is not finite is refused, and the model can be trained on.
func TestNumbers(t *testing.T) {
	c := serve(t, baseModel(t, false), t.TempDir(), 2)
	_, model := c.create(object{"rank": 2})
	text := bytesOf("abc")
	_, answer := c.post("forward_backward", object{"model_id": model, "forward_backward_input": object{
		"loss_fn": "importance_sampling", "data": []object{datumOf(text, object{"logprobs": []float32{-1e30, -1},
			"advantages": []float32{1, 1}})}}})
	_, answer = c.post("retrieve_future", object{"request_id": answer["request_id"]})
	if answer["code"] != "NOT_FINITE" || answer["category"] != "user" {
		t.Errorf("an infinite loss gives %v", answer)
	}
	counted := func() {
		t.Helper()
		if loss, _ := c.backward(model, "importance_sampling", []object{datumOf(text, object{
			"logprobs": []float32{-1e30, -5.5}, "advantages": []float32{0, 1}})}); math.IsNaN(loss) {
			t.Error("a target without an advantage counts")
		}
	}
	counted()
	refused := func(code string) {
		t.Helper()
		_, answer := c.post("optim_step", object{"model_id": model, "adam_params": object{}})
		_, answer = c.post("retrieve_future", object{"request_id": answer["request_id"]})
		if answer["code"] != code {
			t.Errorf("a step gives %v, want %s", answer, code)
		}
	}
	refused("GRADIENTS_LOST") // those of the first pass
	c.backward(model, "importance_sampling", []object{datumOf(text, object{"logprobs": []float32{-5.5, -5.5},
		"advantages": []float32{1e30, 1e30}})})
	refused("NOT_FINITE") // the square of the norm
	counted()
	c.step(model, 1e-3)
	c.forward(model, "cross_entropy", []object{datumOf(text, nil)})
}
