// Package fetch downloads the data of jobs that name it by its address. It reads none of it.
package fetch

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/node/download"
)

// MaxDownload is the largest file of data that is downloaded, in bytes.
const MaxDownload = 4 << 30

// sums is the ending of the file next to a job file that has the digests of the downloaded files, one a line as
// sha256sum writes them, with addresses for names.
const sums = ".sha256"

// Data downloads the data that a job names by its address into the cache of this user, unless it is there. The
// returned job has the digest of each file in its overrides, so that every later reader of the file with them gets
// the same data. The digest is the one that the job file gives, or the one recorded next to the job file, or, on the
// first download, that of the downloaded file, which Data then records. The error is a *problem.ErrorList, or that of
// the context.
func Data(ctx context.Context, j *job.Job, say func(text string)) (*job.Job, error) {
	var overrides []string
	for i, set := range j.Datasets {
		if !set.Remote() {
			continue
		}
		known := set.SHA256
		if known == "" {
			known = recorded(j.Path+sums, set.Path)
		}
		sum, err := fetch(ctx, set, known, say)
		if err == nil && known == "" {
			err = record(j.Path+sums, sum, set.Path)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			code, fix := problem.NoData, "check the address and the connection; the bytes so far stay, and the next try "+
				"continues"
			if errors.Is(err, download.ErrDigest) {
				code, fix = problem.DataChanged, "get the file that was meant, or, if the new one is right, correct "+
					"sha256 and remove its line from "+filepath.Base(j.Path)+sums
			}
			return nil, &problem.ErrorList{Errors: []*problem.Error{j.Problem(fmt.Sprintf("datasets.%d.path", i), code,
				"cannot download "+set.Path, err.Error(), fix)}}
		}
		if set.SHA256 == "" {
			overrides = append(overrides, fmt.Sprintf("datasets.%d.sha256=%q", i, sum))
		}
	}
	if len(overrides) == 0 {
		return j, nil
	}
	return job.Parse(j.Source, j.Path, slices.Concat(j.Overrides, overrides)...)
}

// fetch returns the digest of the file of a data set, which is in the cache then.
func fetch(ctx context.Context, set spec.Dataset, known string, say func(text string)) (string, error) {
	set.SHA256 = known
	to, err := set.Cached()
	if err != nil {
		return "", err
	}
	if known == "" {
		name := sha256.Sum256([]byte(set.Path))
		to = filepath.Join(to, "url-"+hex.EncodeToString(name[:]))
	} else if _, err := os.Stat(to); err == nil {
		return known, nil
	}
	if say != nil {
		say("downloading " + set.Path)
	}
	sum, err := download.Get(ctx, download.File{URL: set.Path, Path: to, SHA256: known, Max: MaxDownload})
	if err != nil || known != "" {
		return sum, err
	}
	set.SHA256 = sum
	place, err := set.Cached()
	if err != nil {
		return "", err
	}
	return sum, os.Rename(to, place)
}

// recorded is the digest that a file has for an address; "" if it has none.
func recorded(file, address string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if sum, name, ok := strings.Cut(s.Text(), "  "); ok && name == address && len(sum) == 2*sha256.Size {
			return sum
		}
	}
	return ""
}

func record(file, sum, address string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s  %s\n", sum, address)
	return errors.Join(err, f.Close())
}
