// Command image makes a container image of starling: one layer with the static binary, as an OCI archive, which docker
// load, podman load and skopeo read. The same commit and the same Go give the same digest on every machine. It needs
// neither a container runtime nor the network.
//
//	go run ./scripts/image --out starling.tar [--arch amd64]
//	docker load < starling.tar
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	out := flag.String("out", "starling.tar", "archive to write")
	arch := flag.String("arch", "amd64", "architecture: amd64 or arm64")
	flag.Parse()
	digest, err := build(*out, *arch)
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
	fmt.Println(digest)
}

// build compiles the program of the commit, and writes its image.
func build(out, arch string) (digest string, err error) {
	commit, err := git("log", "-1", "--format=%ct %H")
	if err != nil {
		return "", err
	}
	seconds, revision, _ := strings.Cut(commit, " ")
	made, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "starling-image")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "starling")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=true", "-ldflags", "-s -w -buildid=", "-o", binary,
		"./cmd/starling")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOFLAGS=")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", err
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return "", err
	}
	image, digest, err := imageOf(program, arch, revision, time.Unix(made, 0).UTC())
	if err != nil {
		return "", err
	}
	return digest, os.WriteFile(out, image, 0o644)
}

func git(args ...string) (string, error) {
	text, err := exec.Command("git", args...).Output()
	return strings.TrimSpace(string(text)), err
}

// user owns the processes and the files of a container.
const user = 65532

// file is an entry of a layer or of the archive.
type file struct {
	name string // ends with / if it is a folder
	mode int64
	data []byte
	uid  int
}

// imageOf returns the archive of an image of a program, and the digest of its manifest.
func imageOf(program []byte, arch, revision string, made time.Time) (archive []byte, digest string, err error) {
	layer, err := tarOf(made, []file{
		{"data/", 0o755, nil, user}, {"etc/", 0o755, nil, 0},
		{"etc/group", 0o644, []byte(fmt.Sprintf("starling:x:%d:\n", user)), 0},
		{"etc/passwd", 0o644, []byte(fmt.Sprintf("starling:x:%d:%d::/data:/sbin/nologin\n", user, user)), 0},
		{"tmp/", 0o1777, nil, 0}, {"usr/", 0o755, nil, 0}, {"usr/local/", 0o755, nil, 0}, {"usr/local/bin/", 0o755, nil, 0},
		{"usr/local/bin/starling", 0o755, program, 0},
	})
	if err != nil {
		return nil, "", err
	}
	packed, err := compressed(layer)
	if err != nil {
		return nil, "", err
	}
	const kind = "application/vnd.oci.image."
	config := encoded(map[string]any{
		"created": made.Format(time.RFC3339), "architecture": arch, "os": "linux",
		"config": map[string]any{
			"User": fmt.Sprintf("%d:%d", user, user), "Entrypoint": []string{"/usr/local/bin/starling"},
			"Env":        []string{"PATH=/usr/local/bin", "HOME=/data"},
			"WorkingDir": "/data", "Volumes": map[string]any{"/data": map[string]any{}}, "StopSignal": "SIGINT",
			"Labels": map[string]string{
				"org.opencontainers.image.source":   "https://github.com/starling-network/starling",
				"org.opencontainers.image.revision": revision, "org.opencontainers.image.licenses": "Apache-2.0",
			},
		},
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{sha(layer)}},
		"history": []any{map[string]any{"created": made.Format(time.RFC3339), "created_by": "scripts/image"}},
	})
	manifest := encoded(map[string]any{
		"schemaVersion": 2, "mediaType": kind + "manifest.v1+json", "config": descriptor(kind+"config.v1+json", config),
		"layers": []any{descriptor(kind+"layer.v1.tar+gzip", packed)},
	})
	entry := descriptor(kind+"manifest.v1+json", manifest)
	entry["platform"] = map[string]string{"architecture": arch, "os": "linux"}
	entry["annotations"] = map[string]string{"org.opencontainers.image.ref.name": "latest",
		"io.containerd.image.name": "docker.io/library/starling:latest"}
	index := encoded(map[string]any{"schemaVersion": 2, "mediaType": kind + "index.v1+json", "manifests": []any{entry}})
	blob := func(data []byte) file {
		return file{"blobs/sha256/" + strings.TrimPrefix(sha(data), "sha256:"), 0o644, data, 0}
	}
	// manifest.json is for versions of docker load that read no OCI layout
	old := encoded([]any{map[string]any{"Config": blob(config).name, "RepoTags": []string{"starling:latest"},
		"Layers": []string{blob(packed).name}}})
	archive, err = tarOf(made, []file{{"blobs/", 0o755, nil, 0}, {"blobs/sha256/", 0o755, nil, 0}, blob(config),
		blob(packed), blob(manifest), {"index.json", 0o644, index, 0}, {"manifest.json", 0o644, old, 0},
		{"oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`), 0}})
	return archive, sha(manifest), err
}

func sha(data []byte) string {
	d := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(d[:])
}

func descriptor(kind string, data []byte) map[string]any {
	return map[string]any{"mediaType": kind, "digest": sha(data), "size": len(data)}
}

// encoded is JSON with sorted keys.
func encoded(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // the values are of the program itself
	}
	return data
}

// tarOf is an archive of files, of one time and without the names of owners.
func tarOf(at time.Time, files []file) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: at, Uid: f.uid, Gid: f.uid,
			Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

func compressed(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}
