package chat

import (
	"errors"
	"strings"
	"testing"
)

// The forms that published models use. Each renders as transformers does.
const (
	chatML = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + " +
		"'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
	llama3 = "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = " +
		"'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% " +
		"if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if " +
		"add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
	mistral = "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) " +
		"%}{{ raise_exception('Conversation roles must alternate') }}{% endif %}{% if message['role'] == 'user' %}{{ " +
		"'[INST] ' + message['content'] + ' [/INST]' }}{% elif message.role == 'assistant' %}{{ message.content + " +
		"eos_token}}{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}"
	zephyr = "{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + message['content'] " +
		"+ eos_token }}\n{% elif message['role'] == 'assistant' %}\n{{ '<|assistant|>\n'  + message['content'] + " +
		"eos_token }}\n{% endif %}\n{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% " +
		"endfor %}"
)

var talk = []Message{{"user", "Hi"}, {"assistant", " Hello. "}, {"user", "Bye"}}

func TestPublishedTemplates(t *testing.T) {
	for name, c := range map[string]struct{ template, want string }{
		"chatml": {chatML, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n Hello. " +
			"<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n"},
		"llama3": {llama3,
			"<s><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>" +
				"<|start_header_id|>assistant<|end_header_id|>\n\nHello.<|eot_id|>" +
				"<|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n"},
		"mistral": {mistral, "<s>[INST] Hi [/INST] Hello. </s>[INST] Bye [/INST]"},
		"zephyr":  {zephyr, "<|user|>\nHi</s>\n<|assistant|>\n Hello. </s>\n<|user|>\nBye</s>\n<|assistant|>\n"},
	} {
		p, err := Parse(c.template)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := p.Render(talk, "<s>", "</s>"); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

func TestExpressions(t *testing.T) {
	for source, want := range map[string]string{
		"{{ 1 + 2 * 3 }}":            "",
		"{{ 7 % 4 - 1 }}":            "2",
		"{{ 'a' ~ 1 ~ true }}":       "a1True",
		"{{ messages | length }}":    "3",
		"{{ messages[-1].content }}": "Bye",
		"{% for m in messages[1:] %}{{ m.role[0:1] }}{% endfor %}":                 "",
		"{% for m in messages[:-1] %}{{ loop.index }}{{ m['role'] }},{% endfor %}": "1user,2assistant,",
		"{{ 'x' if messages is defined and none is none else 'y' }}":               "x",
		"{{ 'y' if nothing is defined or nothing is not none }}":                   "",
		"{{ 'a' in 'cat' and 'z' not in 'cat' and not 'b' in messages[0] }}":       "True",
		"{{ ' a '.strip().upper() + ' b'.lstrip() }}{{ 'abc'.startswith('ab') }}":  "AbTrue",
		"a\n  {% if true %}\nb\n  {% endif %}\nc":                                  "a\nb\nc",
		"a  {%- if true -%}  b  {%- endif %}  c":                                   "ab  c",
		"a{# note #}b {{- 'c' }}":                                                  "abc",
		"{% set x = 1 %}{% for m in messages %}{% set x = 2 %}{% endfor %}{{ x }}": "1",
		"{% if 1 < 2 and 2 >= 2 %}y{% else %}n{% endif %}":                         "y",
	} {
		p, err := Parse(source)
		var got string
		if err == nil {
			got, err = p.Render(talk, "", "")
		}
		if want == "" && source != "{{ 'y' if nothing is defined or nothing is not none }}" {
			if err == nil {
				t.Errorf("%q gives %q, and is outside of what is known", source, got)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", source, got, err, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	for name, source := range map[string]string{
		"macro": "{% macro f() %}{% endmacro %}", "open": "{{ 'a'", "no end": "{% for m in messages %}",
		"end": "{% endif %}", "crossed": "{% for m in messages %}{% endif %}",
		"filter": "{{ messages | tojson }}", "function": "{{ open('file') }}", "method": "{{ messages.append(1) }}",
		"test":        "{{ 1 is odd }}",
		"deep":        "{{ " + strings.Repeat("(", 100) + "1" + strings.Repeat(")", 100) + " }}",
		"deep blocks": strings.Repeat("{% if true %}", 100), "large": strings.Repeat("a", maxTemplate+1),
		"two": "{{ 1 2 }}", "sign": "{{ @ }}",
	} {
		if _, err := Parse(source); !errors.Is(err, ErrTemplate) {
			t.Errorf("%s: %v", name, err)
		}
	}
	loop := "{% for a in messages %}"
	for name, c := range map[string]struct {
		source string
		want   error
	}{
		"raised":   {"{{ raise_exception('no') }}", ErrRaised},
		"type":     {"{{ 1 + 'a' }}", ErrRender},
		"zero":     {"{{ 1 % 0 }}", ErrRender},
		"no list":  {"{% for a in 1 %}{% endfor %}", ErrRender},
		"steps":    {strings.Repeat(loop, 20) + "x" + strings.Repeat("{% endfor %}", 20), ErrRender},
		"doubling": {"{% set a = 'aaaaaaaa' %}" + strings.Repeat("{% set a = a + a %}", 40), ErrRender},
	} {
		p, err := Parse(c.source)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := p.Render(talk, "", ""); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzTemplate must neither panic nor run for ever.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{chatML, llama3, mistral, zephyr, "{{ a.b[1:-2] | trim if not x else -1 }}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		p, err := Parse(source)
		if err != nil {
			if !errors.Is(err, ErrTemplate) {
				t.Error(err)
			}
			return
		}
		if out, err := p.Render(talk, "<s>", "</s>"); err != nil && !errors.Is(err, ErrRender) &&
			!errors.Is(err, ErrRaised) || len(out) > 2*maxOutput {
			t.Errorf("%d bytes, %v", len(out), err)
		}
	})
}
