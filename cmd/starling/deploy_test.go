package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v3"

	"github.com/starling-network/starling/cmd/starling/terminal"
)

// accepts reports why the program does not take a command line.
func accepts(args []string) error {
	cmd, rest, err := rootCommand(new(terminal.Console)).Find(args)
	if err != nil {
		return err
	}
	return cmd.ParseFlags(rest)
}

// The units of systemd are valid, and start commands that exist.
func TestUnitsOfSystemd(t *testing.T) {
	units, err := filepath.Glob("../../examples/deploy/*.service")
	if err != nil || len(units) < 2 {
		t.Fatalf("%v, %v", units, err)
	}
	for _, unit := range units {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		_, line, _ := strings.Cut(string(text), "\nExecStart=/usr/local/bin/starling ")
		line, _, _ = strings.Cut(line, "\n")
		if err := accepts(strings.Fields(line)); err != nil || line == "" {
			t.Errorf("%s starts %q: %v", unit, line, err)
		}
		if _, err := exec.LookPath("systemd-analyze"); err != nil {
			continue
		}
		name := filepath.Join(t.TempDir(), strings.Replace(filepath.Base(unit), "@", "@gpu", 1))
		writeFile(t, name, bytes.Replace(text, []byte("/usr/local/bin/starling"), []byte("/bin/true"), 1))
		if said, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", name).CombinedOutput(); err != nil ||
			strings.Contains(string(said), name) {
			t.Errorf("%s: %v\n%s", unit, err, said)
		}
	}
}

// The manifest of Kubernetes starts a command that exists, with a read-only file system and no privileges.
func TestManifestOfKubernetes(t *testing.T) {
	text, err := os.ReadFile("../../examples/deploy/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var set struct {
		Kind string
		Spec struct {
			Template struct {
				Spec struct {
					SecurityContext struct {
						RunAsUser int `yaml:"runAsUser"`
					} `yaml:"securityContext"`
					Containers []struct {
						Args            []string
						VolumeMounts    []struct{ Name, MountPath string } `yaml:"volumeMounts"`
						SecurityContext struct {
							ReadOnly bool `yaml:"readOnlyRootFilesystem"`
						} `yaml:"securityContext"`
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal(text, &set); err != nil {
		t.Fatal(err)
	}
	pod := set.Spec.Template.Spec
	if set.Kind != "StatefulSet" || len(pod.Containers) != 1 || pod.SecurityContext.RunAsUser != 65532 ||
		!pod.Containers[0].SecurityContext.ReadOnly || len(pod.Containers[0].VolumeMounts) != 3 {
		t.Errorf("%+v", set)
	}
	if err := accepts(pod.Containers[0].Args); err != nil {
		t.Errorf("%v: %v", pod.Containers[0].Args, err)
	}
}
