package fault

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/protocol/run"
)

const (
	sealedShards = 96
	sealedTokens = 1 << 14 // of a shard: one byte of text each
)

// encrypted makes the jobs that follow ones whose data is encrypted, and returns the data.
func (n *network) encrypted() []byte {
	n.t.Helper()
	dir := n.t.TempDir()
	n.file = filepath.Join(dir, "job.yaml")
	var text []byte
	for i := 0; len(text) < sealedShards*sealedTokens; i++ {
		d := sha256.Sum256([]byte{byte(i), byte(i >> 8), byte(i >> 16)})
		text = base64.StdEncoding.AppendEncode(text, d[:])
	}
	for name, content := range map[string]string{
		"data.txt": string(text),
		"job.yaml": `apiVersion: starling/v1
kind: TrainingJob
model: {architecture: gpt2, config: {n_layer: 1, n_embd: 32, n_head: 2, n_positions: 32, vocab_size: 256},
  tokenizer: byte-level}
datasets: [{path: data.txt, format: text}]
encrypt_data: true
val_set_size: 0.1
sequence_len: 32
training: {learning_rate: 3.0e-3}
strategy: {method: diloco, verification: {fraction: 1}}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			n.t.Fatal(err)
		}
	}
	n.undo = []string{"--set", "encrypt_data=false"}
	return text
}

// windows are 16 bytes and more of each shard, by their first four: of its tokens as they are in shards, of its tokens
// as they are in batches, and of its text.
type windows map[uint32][]window

type window struct {
	shard int
	bytes []byte
}

func windowsOf(text []byte) windows {
	w := windows{}
	for shard := range sealedShards {
		for _, at := range []int{100, sealedTokens / 2, sealedTokens - 100} {
			plain := text[shard*sealedTokens+at:][:16]
			var narrow, wide []byte
			for _, b := range plain[:8] {
				narrow, wide = append(narrow, b, 0), append(wide, b, 0, 0, 0)
			}
			for _, b := range [][]byte{plain, narrow, wide} {
				first := binary.LittleEndian.Uint32(b)
				w[first] = append(w[first], window{shard, b})
			}
		}
	}
	return w
}

// in lists the shards of which there is a window in some bytes.
func (w windows) in(raw []byte, known []int) []int {
	var may [1 << 16]bool // by the two bytes in the middle of the first four
	for first := range w {
		may[first>>8&0xffff] = true
	}
	for i := 0; i+4 <= len(raw); i++ {
		if !may[binary.LittleEndian.Uint16(raw[i+1:])] {
			continue
		}
		for _, x := range w[binary.LittleEndian.Uint32(raw[i:])] {
			if bytes.HasPrefix(raw[i:], x.bytes) && !slices.Contains(known, x.shard) {
				known = append(known, x.shard)
			}
		}
	}
	return known
}

// finds lists the shards of which there is a window in the memory of a process.
func (p *process) finds(w windows) (shards []int) {
	p.t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.pid))
	if err != nil {
		p.t.Fatal(err)
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.pid))
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = memory.Close() }()
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var flags string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &flags); n < 3 || !strings.HasPrefix(flags, "rw") {
			continue
		}
		for at := from; at < to; at += 1 << 20 {
			part := make([]byte, min(to-at, 1<<20+64))
			n, _ := memory.ReadAt(part, at) // pages that went away meanwhile have nothing
			shards = w.in(part[:n], shards)
		}
	}
	return shards
}

// TestEncrypted trains on encrypted data with a worker that skips its training, and a consumer that is killed and comes
// back. The liar alone loses stake; the model is that of an undisturbed run on data in the clear. In the memory of a
// process there is no text of a shard whose key it did not get, and on the disks of members there is none at all.
func TestEncrypted(t *testing.T) {
	t.Parallel()
	n := drawNetwork(t, false, nil)
	liars := convicts("skips")
	n.invite(liars)
	text := n.encrypted()
	n.set = append(n.set, "--set", "training.global_batch_size=5")
	const rounds = 6
	j := n.order("encrypted", rounds)
	j.until("three rounds", func(s run.State) bool { return s.Round >= 3 })
	j.consumer.kill()
	got := j.releases()
	read := 0
	for _, p := range append(slices.Clone(n.workers), n.verifier, n.second) {
		keys := got[p.address]
		found := p.finds(windowsOf(text))
		for _, shard := range found {
			if !keys[shard] {
				t.Errorf("%s has text of shard %d in its memory, without its key", p.name, shard)
			}
		}
		read += len(found)
		t.Logf("%s has keys of %d shards of %d, and text of %d in its memory", p.name, len(keys), sealedShards, len(found))
	}
	if read == 0 {
		t.Error("a search that does not find what processes have read says nothing about the rest")
	}
	j.after(4)
	j.consumer.args = append(j.consumer.args, "--resume")
	j.consumer.start(0)
	j.verdict(liars)
	all := windowsOf(text)
	err := filepath.WalkDir(n.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // it was deleted meanwhile
		}
		raw, _ := os.ReadFile(path)
		if found := all.in(raw, nil); len(found) > 0 {
			t.Errorf("%s has text of shards %d", path, found)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// releases are the shards whose keys members have got so far, by their accounts.
func (j *job) releases() map[string]map[int]bool {
	j.t.Helper()
	text, err := os.ReadFile(filepath.Join(j.out, "releases.jsonl"))
	if err != nil {
		j.t.Fatal(err)
	}
	got := map[string]map[int]bool{}
	for line := range bytes.Lines(text) {
		var r struct {
			Member string `json:"member"`
			Shards []int  `json:"shards"`
		}
		if err := json.Unmarshal(line, &r); err != nil {
			j.t.Fatal(err)
		}
		if got[r.Member] == nil {
			got[r.Member] = map[int]bool{}
		}
		for _, i := range r.Shards {
			got[r.Member][i] = true
		}
	}
	return got
}
