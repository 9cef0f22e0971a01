// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
)

func parsed(t *testing.T, args ...string) *Options {
	t.Helper()
	o := &Options{}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestLevel(t *testing.T) {
	for _, tc := range []struct {
		name, env string
		args      []string
		want      int
	}{
		{name: "When no level is set, it should log changes", want: Changes},
		{name: "When --log-level is set, it should use that level", args: []string{"--log-level=1"}, want: Writes},
		{name: "When the klog flag --v is set, it should use that level", args: []string{"--v=2"}, want: Reads},
		{name: "When the short flag -v is set, it should use that level", args: []string{"-v", "2"}, want: Reads},
		{name: "When the environment sets the level, it should use that level", env: "1", want: Writes},
		{name: "When the flag and the environment differ, it should use the flag", env: "1", args: []string{"--log-level=2"}, want: Reads},
		{name: "When the environment has an invalid level, it should log changes", env: "much", want: Changes},
		{name: "When the level is high enough to log bodies, it should use a lower one", args: []string{"--v=10"}, want: MaxLevel},
		{name: "When the level is negative, it should still log changes", args: []string{"--log-level=-1"}, want: Changes},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv(LevelEnv, tc.env)
			var out bytes.Buffer
			logger, err := parsed(t, tc.args...).logger(&out)
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			for level := range 11 {
				logger.V(level).Info("said")
			}
			g.Expect(strings.Count(out.String(), "said")).To(Equal(tc.want + 1))
		})
	}
}

func TestFormat(t *testing.T) {
	t.Run("When the format is JSON, it should write a known level, UTC and readable durations", func(t *testing.T) {
		g := NewWithT(t)
		var out bytes.Buffer
		logger, err := parsed(t, "--log-level=2").logger(&out)
		g.Expect(err).NotTo(HaveOccurred())
		logger.V(Reads).Info("Read from MAAS", "duration", 1500*time.Millisecond)
		line := map[string]any{}
		g.Expect(json.Unmarshal(out.Bytes(), &line)).To(Succeed())
		g.Expect(line).To(And(HaveKeyWithValue("level", "v2"), HaveKeyWithValue("msg", "Read from MAAS"),
			HaveKeyWithValue("duration", "1.5s"), HaveKeyWithValue("ts", MatchRegexp(`^\d{4}-\d\d-\d\dT[\d:.]+Z$`))))
	})
	t.Run("When the format is console, it should not write JSON", func(t *testing.T) {
		g := NewWithT(t)
		var out bytes.Buffer
		logger, err := parsed(t, "--log-format=console").logger(&out)
		g.Expect(err).NotTo(HaveOccurred())
		logger.Error(errors.New("broken"), "Cannot")
		g.Expect(out.String()).To(And(HavePrefix("20"), ContainSubstring("\terror\tCannot\t"), Not(ContainSubstring("goroutine"))))
	})
	t.Run("When the format is unknown, it should name the known formats", func(t *testing.T) {
		_, err := parsed(t, "--log-format=xml").logger(&bytes.Buffer{})
		NewWithT(t).Expect(err).To(MatchError(`--log-format is "xml": use json or console`))
	})
}

func TestEnvironment(t *testing.T) {
	t.Setenv(LevelEnv, "2")
	t.Setenv(FormatEnv, "")
	g := NewWithT(t)
	g.Expect(Environment()).To(HaveLen(1))
	g.Expect(Environment()[0].Name).To(Equal(LevelEnv))
	g.Expect(Environment()[0].Value).To(Equal("2"))
}
