package job

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/starling-network/starling/client/job/pattern"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/client/job/spelling"
	"github.com/starling-network/starling/client/job/strict"
	"github.com/starling-network/starling/compute/grade/script"
)

// MaxFiles bounds how many files the datasets of a job may match.
const MaxFiles = 100_000

// File is one file of training data.
type File struct {
	Dataset int    // index into Spec.Datasets
	Name    string // relative to the folder of the job file, with slashes: the same on every machine
	Path    string // to open it by
}

// Files expands the globs of the datasets: datasets in their order, the files of one in the order of their names.
//
// In a pattern, * and ? and [a-z] match within one name, ** matches any number of folders. A wildcard never matches a
// name that starts with a point, never follows a symbolic link, and never looks into the output folder; a path
// written out may be any of those. Nor does it look into the folder of another run, or of a simulation: their files are
// no data, and would make the job another one. A dataset without a file is a *problem.ErrorList of problem.NoData.
func (j *Job) Files() ([]File, error) {
	var files []File
	var problems []*problem.Error
	for i, set := range j.Datasets {
		at := fmt.Sprintf("datasets.%d.path", i)
		if set.Remote() {
			place, err := set.Cached()
			if _, none := os.Stat(place); err != nil || none != nil {
				problems = append(problems, j.Problem(at, problem.NoData, fmt.Sprintf("%s: %s is not downloaded", at, set.Path),
					"it is not in the cache of this user", "starling data inspect JOB.yaml downloads it"))
			}
			files = append(files, File{Dataset: i, Name: set.Path, Path: place})
			continue
		}
		names, err := j.expand(set.Path)
		switch {
		case err != nil:
			problems = append(problems, j.Problem(at, problem.NoData, fmt.Sprintf("%s: cannot look for %q", at, set.Path),
				err.Error(),
				"correct the pattern or the permissions"))
		case len(names) == 0:
			problems = append(problems, j.Problem(at, problem.NoData, fmt.Sprintf("%s: no file matches %q", at, set.Path),
				"paths are relative to the folder of the job file, which is "+j.Dir(), "correct the path, or put the data there"))
		}
		for _, n := range names {
			files = append(files, File{Dataset: i, Name: n, Path: j.locate(n)})
		}
	}
	if len(problems) == 0 && len(files) > MaxFiles {
		problems = append(problems, j.Problem("datasets", problem.NoData,
			fmt.Sprintf("the datasets match %d files", len(files)),
			fmt.Sprintf("at most %d are read", MaxFiles), "put many small texts into one jsonl file"))
	}
	if err := problem.Join(problems); err != nil {
		return nil, err
	}
	return files, nil
}

// Confine refuses a job that names a file outside of the folder of the job file, or a server to call. It is for job
// files that strangers send.
// The model that it starts from, with its tokenizer, may also lie below another folder, if models names one. It goes by
// the names alone, so that its errors do not show which files exist; a link in a folder may lead out of it.
func (j *Job) Confine(models string) error {
	var problems []*problem.Error
	check := func(key, name string) {
		if !j.below(j.Dir(), name) {
			problems = append(problems, j.Problem(key, problem.Outside,
				fmt.Sprintf("%s: %q lies outside of the folder of the job file", key, strict.Clip(name)),
				"the operator of this process gives the job the files of one folder alone",
				"name a file in it, by its path from there"))
		}
	}
	for i, r := range j.Reward.Rules {
		if r.File != "" {
			check(fmt.Sprintf("reward.rules.%d.file", i), r.File)
		}
		if r.Model != "" && (models == "" || !j.below(models, r.Model)) {
			check(fmt.Sprintf("reward.rules.%d.model", i), r.Model)
		}
	}
	base, t := j.Model.BaseModel, j.Model.Tokenizer
	if models != "" && base != "" && j.below(models, base) {
		if t.Kind == spec.TokenizerFile && path.Dir(filepath.ToSlash(t.Path)) == path.Clean(filepath.ToSlash(base)) {
			t.Kind = spec.ByteLevel // it is the model's
		}
		base = ""
	}
	if base != "" {
		check("model.base_model", base)
	}
	if t.Kind == spec.TokenizerFile {
		check("model.tokenizer", t.Path)
	}
	calls := map[string]string{"notify.webhook": j.Notify.Webhook, "tracking.mlflow.uri": j.Tracking.MLflow.URI}
	for i, p := range j.Output.Push {
		calls[fmt.Sprintf("output.push.%d", i)] = p.To
	}
	for i, set := range j.Datasets {
		at := fmt.Sprintf("datasets.%d.path", i)
		if check(at, set.Path); set.Remote() {
			calls[at] = set.Path
		}
	}
	for _, key := range slices.Sorted(maps.Keys(calls)) {
		if calls[key] != "" {
			problems = append(problems, j.Problem(key, problem.Outside, key+" names a server",
				"the operator of this process decides which servers it calls", "remove the key"))
		}
	}
	return problem.Join(problems)
}

// below reports whether a path of the file leads into a folder.
func (j *Job) below(dir, name string) bool {
	rel, err := filepath.Rel(dir, filepath.Clean(j.locate(name)))
	return err == nil && filepath.IsLocal(rel)
}

// CheckFiles looks for every file that the job names. The error is an *problem.ErrorList.
func (j *Job) CheckFiles() error {
	var problems []*problem.Error
	if base := j.Model.BaseModel; base != "" {
		if info, err := os.Stat(filepath.Join(j.BaseModelPath(), "config.json")); err != nil || info.IsDir() {
			return problem.Join([]*problem.Error{j.Problem("model.base_model", problem.FileNotFound,
				fmt.Sprintf("model.base_model: there is no model in %q", strict.Clip(base)),
				"it names a folder as Hugging Face libraries save it: config.json, the weights as safetensors, tokenizer.json; "+
					"nothing is downloaded",
				"correct the path (relative to the folder of the job file), or: starling model pull hf:OWNER/NAME --to FOLDER")})
		}
	}
	if t := j.Model.Tokenizer; t.Kind == spec.TokenizerFile {
		if info, err := os.Stat(j.locate(t.Path)); err != nil || info.IsDir() {
			fix := "correct the path (relative to the folder of the job file), or use byte-level"
			if spelling.Nearest(t.Path, []string{string(spec.ByteLevel)}) != "" {
				fix = "did you mean byte-level?"
			}
			problems = append(problems, j.Problem("model.tokenizer", problem.FileNotFound,
				fmt.Sprintf("model.tokenizer: there is no file %q", strict.Clip(t.Path)), "it names a tokenizer.json", fix))
		}
	}
	for i, r := range j.Reward.Rules {
		if at := fmt.Sprintf("reward.rules.%d.model", i); r.Model != "" {
			if info, err := os.Stat(filepath.Join(j.RewardModelPath(i), "config.json")); err != nil || info.IsDir() {
				problems = append(problems, j.Problem(at, problem.FileNotFound,
					fmt.Sprintf("%s: there is no model in %q", at, strict.Clip(r.Model)),
					"it names the folder of a reward model", "correct the path (relative to the folder of the job file)"))
			}
		}
		var unread *problem.ErrorList
		if _, err := j.RewardSource(i); errors.As(err, &unread) {
			problems = append(problems, unread.Errors...)
		}
	}
	_, err := j.Files()
	var missing *problem.ErrorList
	if errors.As(err, &missing) {
		problems = append(problems, missing.Errors...)
	}
	return problem.Join(problems)
}

// RewardSource is the source of the function of rule i of the reward, from its file if it has one. The error is a
// *problem.ErrorList.
func (j *Job) RewardSource(i int) (string, error) {
	r := j.Reward.Rules[i]
	if r.File == "" {
		return r.Source, nil
	}
	text, err := readSource(j.locate(r.File))
	if err != nil {
		at := fmt.Sprintf("reward.rules.%d.file", i)
		return "", j.Refuse(at, problem.FileNotFound, at+" cannot be read", err,
			"correct the path (relative to the folder of the job file)")
	}
	return text, nil
}

// RewardModelPath is the folder of the reward model that rule i of the reward names.
func (j *Job) RewardModelPath(i int) string { return j.locate(j.Reward.Rules[i].Model) }

// readSource reads a source, up to one byte more than any may have.
func readSource(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, script.MaxSource+1))
	return string(text), errors.Join(err, f.Close())
}

// TokenizerPath is where the tokenizer.json of a spec.TokenizerFile lies.
func (j *Job) TokenizerPath() string { return j.locate(j.Model.Tokenizer.Path) }

// BaseModelPath is the folder of the model to start from.
func (j *Job) BaseModelPath() string { return j.locate(j.Model.BaseModel) }

// locate turns a path of the file into one to open.
func (j *Job) locate(name string) string {
	if p := filepath.FromSlash(name); filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(j.Dir(), filepath.FromSlash(name))
}

// expand returns the sorted names that a pattern matches.
func (j *Job) expand(name string) ([]string, error) {
	name = path.Clean(filepath.ToSlash(name))
	if !strings.ContainsAny(name, pattern.Wildcards) {
		if info, err := os.Stat(j.locate(name)); err != nil || !info.Mode().IsRegular() {
			return nil, nil
		}
		return []string{name}, nil
	}
	output, err := filepath.Abs(j.Output.Dir)
	if err != nil {
		return nil, err
	}
	return pattern.Match(name, j.locate, output)
}
