import os, sys

from pytest_mlab import Action


class Talker:
    needs_model = True

    def run(self, env):
        env.note("inside", {"litellm": "litellm" in sys.modules, "keys": [n for n in os.environ if "API_KEY" in n]})
        env.execute(Action("Execute Script", {"script_name": "train.py"}))
        said = env.model.complete("first line\nHow shall we do it?\nlast line", temperature=0.5).text
        said = env.model.complete(f"Shorter: {said}", role="fast").text
        env.execute(Action("Final Answer", {"final_answer": said}))
