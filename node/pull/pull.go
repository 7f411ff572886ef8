// Package pull copies a model from the Hugging Face Hub, or from a server with the same interface: the files that
// Starling reads, of one revision. It accepts no Python pickles and runs no downloaded code.
package pull

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/node/download"
)

// DefaultEndpoint is the Hub.
const DefaultEndpoint = "https://huggingface.co"

// Options say which model.
type Options struct {
	Repo     string // OWNER/NAME
	Revision string // branch, tag or commit; "": main
	Endpoint string // "": HF_ENDPOINT, or the Hub
	Token    string // "": HF_TOKEN, or none
	To       string // folder
	MaxBytes int64  // of all files; 0: no limit
	Retry    time.Duration
	Say      func(file string, done, whole int64) // reports progress; may be nil
}

// File is a file of the model.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	Had    bool   `json:"had,omitempty"` // it was there before
}

// Model is what was pulled.
type Model struct {
	Repo   string `json:"repo"`
	Commit string `json:"commit"`
	To     string `json:"to"`
	Files  []File `json:"files"`
}

// Errors of Pull, in addition to those of package download.
var (
	ErrName     = errors.New("a model of the Hub is named OWNER/NAME")
	ErrNoModel  = errors.New("there is no such model or revision, or it is private")
	ErrAccess   = errors.New("the Hub gives no access to the model")
	ErrPickle   = errors.New("the model has no safetensors, only weights that Python code is needed to read")
	ErrNothing  = errors.New("the repository holds no model: config.json or the weights are missing")
	ErrConflict = errors.New("the folder has another file of that name")
	ErrTooLarge = errors.New("the model is larger than the limit")
)

var (
	repoForm = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$`)
	wanted   = []string{"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
		"special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt", "chat_template.jinja",
		"chat_template.json", "adapter_config.json", "left_layers.json", "README.md", "LICENSE", "LICENSE.txt", "NOTICE"}
)

// Pull copies the files of a model into a folder. A file that is already there and equal is not downloaded, and an
// interrupted download is resumed.
func Pull(ctx context.Context, o Options) (*Model, error) {
	h, err := o.hub()
	if err != nil {
		return nil, err
	}
	listed, err := h.list(ctx, o)
	if err != nil {
		return nil, err
	}
	files, err := listed.pick()
	if err != nil {
		return nil, err
	}
	whole := int64(0)
	for _, f := range files {
		whole += f.Size
	}
	if o.MaxBytes > 0 && whole > o.MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes of at most %d", ErrTooLarge, whole, o.MaxBytes)
	}
	m := &Model{Repo: o.Repo, Commit: listed.Commit, To: o.To}
	done := int64(0)
	for _, f := range files {
		limit := f.Size
		if limit == 0 && o.MaxBytes > 0 { // it is not listed
			limit = max(1, o.MaxBytes-done)
		}
		got, err := h.get(ctx, o, listed.Commit, f, limit)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		m.Files = append(m.Files, got)
		done += got.Bytes
	}
	return m, nil
}

// hub is a server.
type hub struct {
	base   string
	header http.Header
}

func (o Options) hub() (*hub, error) {
	if !repoForm.MatchString(o.Repo) || strings.Contains(o.Repo, "..") {
		return nil, fmt.Errorf("%w: %q", ErrName, o.Repo)
	}
	first := func(all ...string) string {
		for _, s := range all {
			if s != "" {
				return s
			}
		}
		return ""
	}
	h := &hub{base: strings.TrimSuffix(first(o.Endpoint, os.Getenv("HF_ENDPOINT"), DefaultEndpoint), "/"),
		header: http.Header{"User-Agent": {"starling"}}}
	if u, err := url.Parse(h.base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("pull: %q is no http or https address", h.base)
	}
	if token := first(o.Token, os.Getenv("HF_TOKEN")); token != "" {
		h.header.Set("Authorization", "Bearer "+token) // a redirect to another host does not get it
	}
	return h, nil
}

// sibling is a file of a repository.
type sibling struct {
	Name string `json:"rfilename"`
	Size int64  `json:"size"`
	LFS  struct {
		SHA256 string `json:"sha256"`
	} `json:"lfs"`
}

// repository is a revision of one.
type repository struct {
	Commit string    `json:"sha"`
	Files  []sibling `json:"siblings"`
}

const (
	maxList    = 16 << 20
	askTimeout = 30 * time.Second
)

func (h *hub) list(ctx context.Context, o Options) (r repository, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	revision := o.Revision
	if revision == "" {
		revision = "main"
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet,
		h.base+"/api/models/"+o.Repo+"/revision/"+url.PathEscape(revision)+"?blobs=true", nil)
	if err != nil {
		return r, err
	}
	q.Header = h.header.Clone()
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return r, fmt.Errorf("pull: %w", err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return r, fmt.Errorf("%w: %s, revision %s", ErrNoModel, o.Repo, revision)
	case http.StatusUnauthorized, http.StatusForbidden:
		return r, fmt.Errorf("%w: %s", ErrAccess, o.Repo)
	default:
		return r, fmt.Errorf("pull: %w", &download.StatusError{Status: answer.StatusCode})
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxList)).Decode(&r); err != nil {
		return r, fmt.Errorf("pull: the server's list of files is no JSON: %w", err)
	}
	if r.Commit == "" {
		r.Commit = revision
	}
	return r, nil
}

// pick are the files to get, in order of their names.
func (r repository) pick() (files []sibling, _ error) {
	var weights, pickles []string
	config := false
	for _, f := range r.Files {
		if weight(f.Name) {
			weights = append(weights, f.Name)
		}
		if ok, _ := path.Match("pytorch_model*.bin", f.Name); ok {
			pickles = append(pickles, f.Name)
		}
		config = config || f.Name == "config.json" || f.Name == "adapter_config.json"
	}
	switch {
	case len(weights) == 0 && len(pickles) > 0:
		return nil, fmt.Errorf("%w: %s", ErrPickle, strings.Join(pickles, ", "))
	case len(weights) == 0 || !config:
		return nil, ErrNothing
	}
	for _, f := range r.Files {
		if slices.Contains(wanted, f.Name) || weight(f.Name) || f.Name == "model.safetensors.index.json" {
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b sibling) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// weight reports whether a file is weights as Starling reads them. Copies for other programs, such as
// consolidated.safetensors, are none.
func weight(name string) bool {
	for _, pattern := range []string{"model.safetensors", "model-*-of-*.safetensors", "adapter_model.safetensors"} {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return false
}

// get copies one file of at most so many bytes; 0: of any size.
func (h *hub) get(ctx context.Context, o Options, commit string, f sibling, limit int64) (File, error) {
	to := filepath.Join(o.To, f.Name)
	out := File{Name: f.Name, Bytes: f.Size, SHA256: f.LFS.SHA256}
	if info, err := os.Stat(to); err == nil {
		sum, err := digest(to)
		if err != nil {
			return out, err
		}
		if f.Size > 0 && info.Size() != f.Size || f.LFS.SHA256 != "" && sum != f.LFS.SHA256 {
			return out, fmt.Errorf("%w: %s", ErrConflict, to)
		}
		return File{Name: f.Name, Bytes: info.Size(), SHA256: sum, Had: true}, nil
	}
	get := download.File{
		URL:  h.base + "/" + o.Repo + "/resolve/" + url.PathEscape(commit) + "/" + url.PathEscape(f.Name),
		Path: to, SHA256: f.LFS.SHA256, Max: limit, Header: h.header, Retry: o.Retry,
	}
	if o.Say != nil {
		get.Say = func(done, whole int64) { o.Say(f.Name, done, max(whole, f.Size)) }
	}
	sum, err := download.Get(ctx, get)
	if no := (*download.StatusError)(nil); errors.As(err, &no) &&
		(no.Status == http.StatusUnauthorized || no.Status == http.StatusForbidden) {
		return out, fmt.Errorf("%w: %w", ErrAccess, err)
	}
	if err != nil {
		return out, err
	}
	info, err := os.Stat(to)
	if err != nil {
		return out, err
	}
	out.SHA256, out.Bytes = sum, info.Size()
	return out, nil
}

func digest(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}
