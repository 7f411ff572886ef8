// Package stores names the stores that get a copy of the model of a job, as job files write them. It sends nothing.
package stores

import (
	"reflect"
	"regexp"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/starling-network/starling/client/job/strict"
)

// Push is a store that gets a copy of the model: `s3://BUCKET/PREFIX`, `hf:OWNER/NAME`, `ipfs`, or {to, checkpoints}.
type Push struct {
	To          string `job:"to,required"`
	Checkpoints bool   `job:"checkpoints"` // the saved checkpoints too
}

// Decode implements strict.Node.
func (p *Push) Decode(d *strict.Decoder, path string, n *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		d.Section(path, n, reflect.ValueOf(p).Elem())
		return
	}
	d.Scalar(path, n, reflect.ValueOf(&p.To).Elem())
}

var (
	bucketForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	partForm   = regexp.MustCompile(`^[A-Za-z0-9!_.*'()+=@ -]{1,200}$`)
	repoForm   = regexp.MustCompile(`^[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}$`)
)

// S3 reads a target in a store that speaks the protocol of Amazon S3: s3://BUCKET/PREFIX. The prefix has no slash at
// its ends; "" is the bucket itself.
func (p Push) S3() (bucket, prefix string, ok bool) {
	rest, ok := strings.CutPrefix(p.To, "s3://")
	if !ok {
		return "", "", false
	}
	bucket, prefix, _ = strings.Cut(rest, "/")
	prefix = strings.TrimSuffix(prefix, "/")
	if !bucketForm.MatchString(bucket) || strings.Contains(bucket, "..") || len(prefix) > 512 {
		return "", "", false
	}
	if prefix == "" {
		return bucket, "", true
	}
	for part := range strings.SplitSeq(prefix, "/") {
		if part == "." || part == ".." || !partForm.MatchString(part) {
			return "", "", false
		}
	}
	return bucket, prefix, true
}

// Hub reads a repository of the Hugging Face Hub: hf:OWNER/NAME.
func (p Push) Hub() (repo string, ok bool) {
	repo, ok = strings.CutPrefix(p.To, "hf:")
	return repo, ok && repoForm.MatchString(repo) && !strings.Contains(repo, "..")
}

// IPFS reports whether a pinning service of IPFS gets the last checkpoint.
func (p Push) IPFS() bool { return p.To == "ipfs" }

// Known reports whether the target has a form that is known.
func (p Push) Known() bool {
	_, _, bucket := p.S3()
	_, repo := p.Hub()
	return bucket || repo || p.IPFS()
}
