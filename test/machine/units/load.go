// SPDX-License-Identifier: Apache-2.0

package units

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// ErrNotFound reports that no folder has the unit.
var ErrNotFound = errors.New("unit not found")

// ErrMasked reports that the unit is a link to /dev/null.
var ErrMasked = errors.New("unit is masked")

// Load reads a unit and its drop-ins from the folders. The first folder that has it takes precedence.
func Load(name string, dirs []string) (*Unit, error) {
	unit := &Unit{Name: name}
	content, err := unitFile(name, dirs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := unit.parse(content); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	dropIns, err := dropInFiles(name, dirs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, file := range dropIns {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := unit.parse(string(data)); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return unit, nil
}

// unitFile reads the file of a unit; for an instance without a file it reads the template.
func unitFile(name string, dirs []string) (content string, err error) {
	for _, candidate := range candidates(name) {
		if content, err = exactFile(candidate, dirs); !errors.Is(err, ErrNotFound) {
			return content, err
		}
	}
	return content, err
}

// candidates returns the possible file names of a unit: a@b.service uses a@.service if it has no file.
func candidates(name string) []string {
	at := strings.IndexByte(name, '@')
	if at < 0 {
		return []string{name}
	}
	_, suffix := cutSuffix(name)
	return []string{name, name[:at+1] + "." + suffix}
}

func exactFile(name string, dirs []string) (string, error) {
	for _, dir := range dirs {
		file := filepath.Join(dir, name)
		if target, err := os.Readlink(file); err == nil && target == os.DevNull {
			return "", ErrMasked
		}
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return string(data), err
	}
	return "", ErrNotFound
}

// dropInFiles returns drop-ins sorted by base name. If two have the same name, the one in the first folder applies.
func dropInFiles(name string, dirs []string) ([]string, error) {
	byBase := map[string]string{}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, name+".d", "*.conf"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if _, ok := byBase[filepath.Base(file)]; !ok {
				byBase[filepath.Base(file)] = file
			}
		}
	}
	var sorted []string
	for _, file := range byBase {
		sorted = append(sorted, file)
	}
	slices.SortFunc(sorted, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	return sorted, nil
}

// bootTargets lists the targets that every boot reaches, whether or not a unit wants them.
var bootTargets = map[string]bool{
	"default.target": true, "graphical.target": true, "multi-user.target": true, "basic.target": true, "sysinit.target": true,
	"local-fs.target": true, "network.target": true, "network-online.target": true, "timers.target": true, "sockets.target": true,
}

// Enabled lists the units to start at boot, sorted: units that presets enable, and units with a link into a target of
// every boot. presets is the folder of *.preset files, which may be missing.
func Enabled(dirs []string, presets string) ([]string, error) {
	var names []string
	for _, dir := range dirs {
		for _, kind := range []string{"wants", "requires"} {
			links, err := filepath.Glob(filepath.Join(dir, "*.target."+kind, "*"))
			if err != nil {
				return nil, err
			}
			for _, link := range links {
				if target := filepath.Base(filepath.Dir(link)); bootTargets[strings.TrimSuffix(target, "."+kind)] {
					names = append(names, filepath.Base(link))
				}
			}
		}
	}
	rules, err := presetRules(presets)
	if err != nil {
		return nil, err
	}
	for _, name := range known(dirs) {
		for _, instance := range enabledByPreset(name, rules) {
			if installable(instance, dirs) {
				names = append(names, instance)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// known returns the names of the unit files in the folders.
func known(dirs []string) []string {
	var names []string
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // A missing folder has no units.
		}
		for _, entry := range entries {
			if !entry.IsDir() && strings.Contains(entry.Name(), ".") {
				names = append(names, entry.Name())
			}
		}
	}
	return names
}

// installable reports whether a unit has WantedBy or RequiredBy: without them, enabling has no effect. It returns true
// for an unreadable unit, so that starting it reports the error.
func installable(name string, dirs []string) bool {
	unit, err := Load(name, dirs)
	if err != nil {
		return !errors.Is(err, ErrMasked)
	}
	return len(unit.list("Install.WantedBy"))+len(unit.list("Install.RequiredBy")) > 0
}

type presetRule struct {
	pattern   string
	enable    bool
	instances []string
}

func presetRules(dir string) ([]presetRule, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.preset"))
	if err != nil {
		return nil, err
	}
	var rules []presetRule
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading presets: %w", err)
		}
		for line := range strings.Lines(string(data)) {
			words := strings.Fields(line)
			if len(words) >= 2 && (words[0] == "enable" || words[0] == "disable") {
				rules = append(rules, presetRule{pattern: words[1], enable: words[0] == "enable", instances: words[2:]})
			}
		}
	}
	return rules, nil
}

// enabledByPreset lists the units that the presets start for a unit file: itself, the instances of a template, or none.
func enabledByPreset(name string, rules []presetRule) []string {
	prefix, suffix, template := strings.Cut(name, "@.")
	for _, rule := range rules {
		if matched, _ := path.Match(rule.pattern, name); !matched {
			continue
		}
		switch {
		case !rule.enable:
			return nil
		case !template:
			return []string{name}
		}
		var instances []string
		for _, instance := range rule.instances {
			instances = append(instances, prefix+"@"+instance+"."+suffix)
		}
		return instances
	}
	return nil
}
