// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
)

// module is the path of the module, the prefix of each package path.
const module = "github.com/openshift/hypershift"

// changed lists the packages of unit and integration tests with a file that differs from the commit REPEAT_BASE. Its
// default is the merge base of this branch and origin/main.
func changed() ([]string, error) {
	base := cmp.Or(os.Getenv("REPEAT_BASE"), mergeBase(), "HEAD~1")
	out, err := exec.Command("git", "diff", "--name-only", base).Output()
	if err != nil {
		return nil, fmt.Errorf("listing the files that differ from %s: %w; name a commit with REPEAT_BASE", base, err)
	}
	all, err := withoutEnvironment()
	if err != nil {
		return nil, err
	}
	folders := folders(strings.Fields(string(out)))
	packages := slices.DeleteFunc(all, func(pkg string) bool {
		return !slices.Contains(folders, strings.TrimPrefix(pkg, module+"/"))
	})
	if len(packages) == 0 {
		return nil, fmt.Errorf("no package with tests differs from %s; name an older commit with REPEAT_BASE", base)
	}
	return packages, nil
}

func mergeBase() string {
	out, err := exec.Command("git", "merge-base", "HEAD", "origin/main").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// folders returns the folders of files. Test data counts as the folder of the package that reads it.
func folders(files []string) []string {
	var all []string
	for _, file := range files {
		folder, _, _ := strings.Cut(path.Dir(file), "/testdata")
		all = append(all, folder)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// burn runs two busy loops per processor until stop is closed, to simulate other programs on a user's machine.
func burn(stop <-chan struct{}) {
	for range 2 * runtime.NumCPU() {
		go func() {
			for ended := false; !ended; {
				select {
				case <-stop:
					ended = true
				default:
					runtime.Gosched()
				}
			}
		}()
	}
}
