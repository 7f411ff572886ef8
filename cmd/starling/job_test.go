package main

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/node/runs/synthetic"
	"github.com/starling-network/starling/node/tuning"
	"github.com/starling-network/starling/web"
)

// answer runs a command in this process.
func answer(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	streams := map[string]**os.File{"out": &os.Stdout, "err": &os.Stderr}
	for name, stream := range streams {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		before := *stream
		*stream = f
		defer func() { *stream = before; _ = f.Close() }()
	}
	ctx, cancel := context.WithTimeout(t.Context(), silence)
	defer cancel()
	code = run(ctx, args)
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	return code, read("out"), read("err")
}

// folderOfRuns has a run that is over and one that stopped.
func folderOfRuns(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, r := range []synthetic.Run{{Name: "whole", Steps: 40, Every: 10, Finished: true},
		{Name: "half", Steps: 20, Every: 10}} {
		if err := r.Write(filepath.Join(dir, r.Name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"whole/starling.log": "first\nlast\n", "whole/model.safetensors": "weights",
		"whole/config.json": "{}", "text.txt": "a"} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// The answers of commands about jobs are the same in every form, from a folder and from a server.
func TestJobsOfAFolderAndOfAServer(t *testing.T) {
	dir := folderOfRuns(t)
	lib, err := runs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(web.New(web.Config{Runs: lib}))
	defer server.Close()
	for _, c := range []struct{ verb, says, names string }{
		{"job list", "whole", "half\nwhole\n"},
		{"job get whole", "state root", "whole\n"},
		{"job metrics whole", "eval_loss", ""},
		{"job events whole", "worker lied", ""},
		{"job receipts whole --kind work", "verified", ""},
		{"job disputes whole", "worker lied (", ""},
		{"job lineage whole", "bafkrei", ""},
		{"job workers whole", "starling1aworker0", ""},
		{"job cost whole", "25.00", "whole\n"},
		{"job logs whole", "last", ""},
		{"job compare whole half", "* ", "half\nwhole\n"},
		{"model list", "whole", "whole\n"},
		{"model provenance whole", "bafkrei", "whole\n"},
	} {
		for _, place := range [][]string{{"--dir", dir}, {"--api", server.URL}} {
			args := append(strings.Fields(c.verb), place...)
			if code, out, stderr := answer(t, args...); code != 0 || !strings.Contains(out, c.says) {
				t.Errorf("%v: exit %d\n%s%s", args, code, out, stderr)
			}
			for _, form := range []string{"json", "jsonl", "yaml"} {
				code, out, stderr := answer(t, append(args, "-o", form)...)
				if code != 0 || out == "" || form == "json" && !json.Valid([]byte(out)) {
					t.Errorf("%v -o %s: exit %d\n%s%s", args, form, code, out, stderr)
				}
			}
			if c.names == "" {
				continue
			}
			code, out, stderr := answer(t, append(args, "-o", "name")...)
			lines := strings.Split(out, "\n")
			if code != 0 || len(out) != len(c.names) || !strings.Contains("\n"+c.names, "\n"+lines[0]+"\n") {
				t.Errorf("%v -o name: exit %d, %q, want %q\n%s", args, code, out, c.names, stderr)
			}
		}
	}
}

func TestJobsAreFound(t *testing.T) {
	dir := folderOfRuns(t)
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"job get who --dir " + dir, 0, "whole"},
		{"job get " + filepath.Join(dir, "half"), 0, "stopped"},
		{"job get half --dir " + filepath.Join(dir, "half"), 0, "stopped"},
		{"job get nobody --dir " + dir, 3, "JOB_NOT_FOUND"},
		{"job list --dir " + filepath.Join(dir, "nowhere"), 3, "NOT_A_RUN"},
		{"job list --api 127.0.0.1:7300", 2, "ADDRESS_INVALID"},
		{"job list --api http://127.0.0.1:1", 8, "SERVER_UNREACHABLE"},
		{"job list --limit -1 --dir " + dir, 2, "USAGE"},
		{"job list --dir " + dir + " --api http://127.0.0.1:1", 2, "USAGE"},
		{"job compare whole --dir " + dir, 2, "two jobs"},
		{"job metrics whole --points 1 --dir " + dir, 2, "--points"},
		{"job watch whole --dir " + dir, 0, "done"},
		{"job watch half --dir " + dir, 11, "JOB_STOPPED"},
		{"job logs half --dir " + dir, 0, ""},
		{"job logs whole --follow --dir " + dir, 0, "last"},
		{"job metrics whole --csv --dir " + dir, 0, "kind,round,step"},
		{"job validate " + filepath.Join(dir, "whole", "job.yaml"), 2, "text.txt"},
		{"job validate " + filepath.Join(dir, "whole", "job.yaml") + " --set datasets.0.path=../text.txt", 0, "is valid"},
		{"job plan job.yaml --api http://127.0.0.1:1 --network http://127.0.0.1:1", 2, "one of them"},
		{"job plan " + filepath.Join(dir, "whole", "job.yaml") + " --api http://127.0.0.1:1", 8, "SERVER_UNREACHABLE"},
		{"job submit " + filepath.Join(dir, "whole", "job.yaml"), 2, "--api"},
		{"job export half --dir " + dir + " --to " + filepath.Join(dir, "copy") + " --files model", 3, "NO_FILES"},
		{"job export whole --dir " + dir + " --to " + filepath.Join(dir, "copy"), 0, "files"},
		{"model pull whole --dir " + dir + " --to " + filepath.Join(dir, "copy"), 0, "2 files"},
		{"worker logs --home " + dir, 3, "LOG_NOT_FOUND"},
		{"worker tasks --home " + dir, 8, "NOT_RUNNING"},
		{"validator duties " + dir, 3, "VALIDATOR_NOT_FOUND"},
		{"validator earnings " + dir, 3, "VALIDATOR_NOT_FOUND"},
		{"net peers --network http://127.0.0.1:1", 8, "NETWORK_UNREACHABLE"},
		{"job list --network http://127.0.0.1:1", 8, "NETWORK_UNREACHABLE"},
		{"market price", 2, "--network"},
		{"model chat " + dir, 3, "MODEL_UNREADABLE"},
	} {
		code, out, stderr := answer(t, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out+stderr, c.says) {
			t.Errorf("%s: exit %d, want %d and %q\n%s%s", c.args, code, c.code, c.says, out, stderr)
		}
	}
	if raw, err := os.ReadFile(filepath.Join(dir, "copy", "model.safetensors")); err != nil || string(raw) != "weights" {
		t.Errorf("the copy: %q, %v", raw, err)
	}
	if raw, err := os.ReadFile(filepath.Join(dir, "copy", "metrics.jsonl")); err != nil || len(raw) == 0 {
		t.Errorf("the records of the copy: %v", err)
	}
}

func TestDataCommands(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"good.jsonl": "{\"text\":\"one two three four\"}\n{\"text\":\"five six seven eight\"}\n",
		"bad.jsonl":  "{\"text\":\"one\"}\nno\n{}\n", "dump": "x",
		"chats.jsonl": "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b\"}]}\n",
		"job.yaml": "apiVersion: starling/v1\nkind: TrainingJob\nmodel: {architecture: gpt2, tokenizer: " +
			"byte-level}\ndatasets: [{path: good.jsonl, format: jsonl}]\nsequence_len: 8\n" +
			"training: {max_steps: 4, global_batch_size: 2}\nstrategy: {workers: 2, sync_steps: 2}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"data inspect good.jsonl", 0, "jsonl"},
		{"data inspect job.yaml -o json", 0, `"documents":2`},
		{"data inspect", 2, "SOURCE"},
		{"data inspect dump", 2, "--format"},
		{"data inspect nowhere.txt", 3, "FILE_UNUSABLE"},
		{"data validate good.jsonl job.yaml", 0, "2 files with 4 documents, 0 faults"},
		{"data validate bad.jsonl", 12, "DATA_INVALID"},
		{"data validate bad.jsonl -o jsonl", 12, `{"file":"bad.jsonl","line":3`},
		{"data validate bad.jsonl --limit 1", 12, "2 faults"},
		{"data stats job.yaml", 0, "one pass"},
		{"data stats job.yaml -o json", 0, `"train_tokens":37,"val_tokens":1`},
		{"data stats bad.jsonl", 2, "JOB_"},
		{"data tokenize good.jsonl", 2, "--dir"},
		{"data tokenize good.jsonl --vocab-size 260 --dir tokens", 0, "format: llmc-bin"},
		{"data tokenize good.jsonl --dir tokens", 5, "FILE_EXISTS"},
		{"data tokenize bad.jsonl --dir other", 2, "bad.jsonl:2"},
		{"data tokenize good.jsonl --tokenizer dump --dir other", 2, "TOKENIZER_UNUSABLE"},
		{"data inspect tokens/tokens.bin", 0, "tokens"},
		{"data list -o json", 0, `{"files":[]}`},
		{"data add bad.jsonl", 2, "line 1"},
		{"data add chats.jsonl", 0, "chats.jsonl"},
		{"data list", 0, "chats.jsonl"},
		{"data rm file-000000000000000000000000", 3, ""},
	} {
		code, out, stderr := answer(t, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out+stderr, c.says) {
			t.Errorf("%s: exit %d, want %d and %q\n%s%s", c.args, code, c.code, c.says, out, stderr)
		}
	}
	if _, err := job.Load("job.yaml", "datasets.0={path: tokens/tokens.bin, format: llmc-bin}",
		"model.tokenizer=tokens/tokenizer.json"); err != nil {
		t.Errorf("a job that names the tokens: %v", err)
	}
	_, id, _ := answer(t, "data", "list", "-o", "name")
	if code, _, stderr := answer(t, "data", "rm", strings.TrimSpace(id)); code != 0 {
		t.Errorf("rm: exit %d\n%s", code, stderr)
	}
	server := httptest.NewServer(web.New(web.Config{Files: tuning.NewExampleStore("shelf")}))
	defer server.Close()
	if code, kept, stderr := answer(t, "data", "add", "chats.jsonl", "--api", server.URL, "-o", "name"); code != 0 ||
		kept != id {
		t.Errorf("the same file at a server: exit %d, %q, want %q\n%s", code, kept, id, stderr)
	}
}

// The lists of the names that the simulator has are of one form.
func TestSimLists(t *testing.T) {
	for what, some := range map[string]string{"strategies": "diloco\n", "attacks": "skips\n", "networks": "home\n"} {
		code, names, stderr := answer(t, "sim", what, "-o", "name")
		if code != 0 || !strings.Contains("\n"+names, "\n"+some) {
			t.Errorf("%s: exit %d\n%s%s", what, code, names, stderr)
		}
		if code, out, _ := answer(t, "sim", what); code != 0 || strings.Count(out, "\n") != strings.Count(names, "\n")+1 {
			t.Errorf("%s: exit %d\n%s", what, code, out)
		}
	}
	if code, _, _ := answer(t, "sim", "no-such-job.yaml"); code != terminal.ExitUsage {
		t.Errorf("a job file beside the lists: exit %d", code)
	}
}
