// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// stockPrograms are the programs in the image of a release's control plane. The hosted-cluster-config-operator and the
// ignition-server are commands of the control-plane-operator.
var stockPrograms = []string{"control-plane-operator", "control-plane-pki-operator"}

// sources are the sources of openshift/hypershift at one commit, and what was built from them.
type sources struct {
	// commit is the exported commit, and date its date.
	commit, date string
	// dir holds the exported files.
	dir string
	// bin holds the stock programs.
	bin string
	// line is the newest OpenShift line that these sources support, such as "4.20".
	line string
	// kubernetes is the version of Kubernetes that the sources are compiled with, such as "1.33.4".
	kubernetes string
	// labels are the labels of the image of the control plane's operators.
	labels map[string]string
}

// exportSources reads the sources of a clone at a ref into a folder of cache that is named after the commit. It does
// not change the clone.
func exportSources(ctx context.Context, clone, ref, cache string) (*sources, error) {
	commit, err := git(ctx, clone, "rev-parse", "--verify", ref+"^{commit}")
	if err != nil {
		return nil, fmt.Errorf("looking for %q in the clone %s: %w", ref, clone, err)
	}
	date, err := git(ctx, clone, "show", "--no-patch", "--format=%cs", commit)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(cache, commit)
	s := &sources{commit: commit, date: date, dir: filepath.Join(folder, "src"), bin: filepath.Join(folder, "bin")}
	if _, err := os.Stat(s.dir); errors.Is(err, os.ErrNotExist) {
		if err := export(ctx, clone, commit, s.dir); err != nil {
			return nil, fmt.Errorf("exporting %s of %s: %w", commit, clone, err)
		}
	}
	return s, s.read()
}

// export writes the files of a commit, without documentation. The target appears when it is complete.
func export(ctx context.Context, clone, commit, target string) error {
	part := target + ".part"
	if err := errors.Join(os.RemoveAll(part), os.MkdirAll(part, 0o755)); err != nil {
		return err
	}
	archive := exec.CommandContext(ctx, "git", "-c", trusted, "-C", clone, "archive", commit, "--", ".", ":(exclude)docs")
	unpack := exec.CommandContext(ctx, "tar", "-x", "-C", part)
	var told bytes.Buffer
	archive.Stderr, unpack.Stderr = &told, &told
	pipe, err := archive.StdoutPipe()
	if err != nil {
		return err
	}
	unpack.Stdin = pipe
	if err := errors.Join(archive.Start(), unpack.Start()); err != nil {
		return err
	}
	if err := errors.Join(unpack.Wait(), archive.Wait()); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(told.String()))
	}
	return os.Rename(part, target)
}

var (
	latestLine    = regexp.MustCompile(`LatestSupportedVersion\s*=\s*semver\.MustParse\("(\d+\.\d+)\.`)
	kubernetesAPI = regexp.MustCompile(`(?m)^\s*k8s\.io/api v0\.(\S+)$`)
	imageLabel    = regexp.MustCompile(`(?m)^LABEL ([^=\s]+)=(.*)$`)
	openshiftAPI  = regexp.MustCompile(`(?m)^\s*github\.com/openshift/api (\S+)$`)
)

// read reads the versions and labels of these sources that a payload must contain.
func (s *sources) read() (err error) {
	if s.line, err = s.find("support/supportedversion/version.go", latestLine); err != nil {
		return err
	}
	if s.kubernetes, err = s.find("go.mod", kubernetesAPI); err != nil {
		return err
	}
	s.kubernetes = "1." + s.kubernetes
	text, err := os.ReadFile(filepath.Join(s.dir, "Dockerfile.control-plane"))
	if err != nil {
		return err
	}
	s.labels = map[string]string{}
	for _, match := range imageLabel.FindAllStringSubmatch(string(text), -1) {
		s.labels[match[1]] = match[2]
	}
	return nil
}

// find returns the first group of a pattern in a file.
func (s *sources) find(file string, pattern *regexp.Regexp) (string, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, file))
	if err != nil {
		return "", err
	}
	match := pattern.FindStringSubmatch(string(text))
	if match == nil {
		return "", fmt.Errorf("reading %s of commit %s: no match of %s; this test does not know its layout", file, s.commit,
			pattern)
	}
	return match[1], nil
}

// build builds the stock programs that are not built yet.
func (s *sources) build(ctx context.Context, say func(string, ...any)) error {
	if err := os.MkdirAll(s.bin, 0o755); err != nil {
		return err
	}
	for _, name := range stockPrograms {
		target := filepath.Join(s.bin, name)
		if _, err := os.Stat(target); err == nil {
			say("%s of %s is built already", name, s.commit)
			continue
		}
		start := time.Now()
		// Do not optimize: compiling the SDKs of all clouds with optimization takes longer than the programs run in
		// this test.
		cmd := exec.CommandContext(ctx, "go", "build", "-gcflags=all=-N -l", "-ldflags", "-s -w",
			"-o", target+".part", "./"+name)
		cmd.Dir = s.dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=vendor -buildvcs=false -trimpath", "GOWORK=off", "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s of %s: %w: %s", name, s.commit, err, lastLines(out))
		}
		if err := os.Rename(target+".part", target); err != nil {
			return err
		}
		say("%s of %s built in %s", name, s.commit, time.Since(start).Round(time.Second))
	}
	return nil
}

// lastLines returns the end of a command's output.
func lastLines(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// openshiftAPIDir returns the folder of the module github.com/openshift/api in the version that the sources use. It
// contains the CRDs of a release.
func (s *sources) openshiftAPIDir(ctx context.Context) (string, error) {
	version, err := s.find("go.mod", openshiftAPI)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", "github.com/openshift/api@"+version)
	cmd.Dir, cmd.Env = os.TempDir(), append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("downloading github.com/openshift/api@%s: %w: %s", version, err, lastLines(out))
	}
	match := regexp.MustCompile(`"Dir": "([^"]+)"`).FindSubmatch(out)
	if match == nil {
		return "", fmt.Errorf("go mod download printed no folder of github.com/openshift/api@%s", version)
	}
	return string(match[1]), nil
}

// trusted lets root read a clone of another user.
const trusted = "safe.directory=*"

// git returns the output of a git command in a clone.
func git(ctx context.Context, clone string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-c", trusted, "-C", clone}, args...)...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}
